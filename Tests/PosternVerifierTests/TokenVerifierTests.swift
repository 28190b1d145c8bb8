import Base
import Crypto
import Messages
import PosternClient
import Synchronization
import TestSupport
import Testing
import Tokens
import Transport

@testable import PosternVerifier

/// A verifier beside a real server, over TCP.
@Suite struct TokenVerifierTests {
    /// A server, a verifier, and an admin who changes things.
    private struct Scene {
        let server: TestServer
        let admin: RawClient
        let channel: Channel

        init(_ server: TestServer) throws {
            self.server = server
            self.admin = try server.connect()
            self.channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
        }

        func signUp(_ email: Text = "ada@example.com", tenantID: Text = .empty) throws -> AccountsSignUpResponse {
            try admin.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(tenantID: tenantID, email: email, password: Secret("correct horse")))
        }

        func revoke(_ uid: Text, tenantID: Text = .empty) throws {
            server.clock.advance(by: .milliseconds(1))
            let _: UsersRevokeTokensResponse = try admin.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(tenantID: tenantID, uid: uid))
        }

        func setTenant(_ path: Text, _ change: (inout Tenant) -> Void) throws {
            var tenant = Tenant()
            change(&tenant)
            let _: TenantsUpdateResponse = try admin.call(
                "postern.v1.Tenants/Update",
                TenantsUpdateRequest(tenant: tenant, updateMask: ProtobufFieldMask(paths: [path])))
        }
    }

    @Test func aTokenIsVerifiedHereAndARevokedOneRefused() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let ada = try scene.signUp()
            let bob = try scene.signUp("bob@example.com")
            let verifier = try await TokenVerifier(channel: scene.channel)
            let verified = try verifier.verifyNow(ada.tokens!.idToken.string)
            #expect(verified.uid == ada.user!.uid)
            try scene.revoke(ada.user!.uid)
            try await verifier.becomes("TOKEN_EXPIRED", ada.tokens!.idToken)
            #expect(verifier.reason(bob.tokens!.idToken) == "")
            let _: SessionsSignOutResponse = try scene.admin.call(
                "postern.v1.Sessions/SignOut", SessionsSignOutRequest(idToken: bob.tokens!.idToken))
            try await verifier.becomes("TOKEN_EXPIRED", bob.tokens!.idToken)
            await scene.channel.shutdown()
        }
    }

    @Test func whatWasRevokedBeforeTheVerifierCameIsInItsSnapshot() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let ada = try scene.signUp()
            try scene.revoke(ada.user!.uid)
            let verifier = try await TokenVerifier(channel: scene.channel)
            #expect(verifier.reason(ada.tokens!.idToken) == "TOKEN_EXPIRED")
            await scene.channel.shutdown()
        }
    }

    @Test func timesAreTheServers() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            // The test's server lives in 2027: a verifier that asked its own clock would refuse everything.
            let ada = try scene.signUp()
            var options = VerifierOptions()
            options.heartbeat = .seconds(1)
            let verifier = try await TokenVerifier(channel: scene.channel, options: options)
            #expect(verifier.reason(ada.tokens!.idToken) == "")
            server.clock.advance(by: .minutes(61))
            try await verifier.becomes("TOKEN_EXPIRED", ada.tokens!.idToken)
            await scene.channel.shutdown()
        }
    }

    @Test func nonsenseAndOtherTenantsTokensAreRefused() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let _: TenantsCreateResponse = try scene.admin.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let own = try scene.signUp().tokens!.idToken
            let other = try scene.signUp(tenantID: "acme").tokens!.idToken
            let verifier = try await TokenVerifier(channel: scene.channel)
            #expect(verifier.reason(other) == "TENANT_ID_MISMATCH")
            let told = #expect(throws: Failure.self) { try verifier.verifyNow(other.string) }
            #expect(told?.message == "The token is of tenant \"acme\"; this verifier is for the default pool.")
            for token in ["", "a.b.c", Text("\(own)x"), Text("\(own).x")] as [Text] {
                #expect(verifier.reason(token) == "INVALID_ID_TOKEN")
            }
            // A token's header may contain anything.
            #expect(throws: Failure.self) { try verifier.verifyNow("a.b\0.c") }
            var options = VerifierOptions()
            options.tenants = .any
            let all = try await TokenVerifier(channel: scene.channel, options: options)
            #expect(all.reason(own) == "" && all.reason(other) == "")
            let _: TenantsDeleteResponse = try scene.admin.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            try await all.becomes("TENANT_NOT_FOUND", other)
            try scene.setTenant("disable_auth") { $0.disableAuth = true }
            try await verifier.becomes("PROJECT_DISABLED", own)
            try scene.setTenant("disable_auth") { $0.disableAuth = false }
            try await verifier.becomes("", own)
            await scene.channel.shutdown()
        }
    }

    @Test func aCredentialOfOneTenantVerifiesNoOthersTokens() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            for tenantID in ["acme", "other"] as [Text] {
                let _: TenantsCreateResponse = try scene.admin.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            let made: ProjectCreateApiKeyResponse = try scene.admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .verifier, scope: Scope(tenants: .tenantID("acme"))))
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(made.secretKey))
            var options = VerifierOptions()
            options.tenants = .any
            let verifier = try await TokenVerifier(channel: channel, options: options)
            // Without a name, the verifier is for the key's tenant.
            let unnamed = try await TokenVerifier(channel: channel)
            #expect(unnamed.options.tenants == .one("acme"))
            let ofAcme = try scene.signUp(tenantID: "acme")
            let token = ofAcme.tokens!.idToken
            #expect(verifier.reason(token) == "" && unnamed.reason(token) == "")
            // These verifiers are not told what was revoked there.
            for tenantID in ["other", ""] as [Text] {
                let token = try scene.signUp(tenantID: tenantID).tokens!.idToken
                for verifier in [verifier, unnamed] {
                    #expect(verifier.reason(token) == "TENANT_ID_MISMATCH")
                }
            }
            await channel.shutdown()
            await scene.channel.shutdown()
        }
    }

    @Test func aNewKeyIsFetchedWhenATokenOfItComes() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            var options = VerifierOptions()
            options.keyRefreshFloor = .zero
            let verifier = try await TokenVerifier(channel: scene.channel, options: options)
            server.clock.advance(by: .seconds(1))
            let _: ProjectRotateSigningKeyResponse = try scene.admin.call(
                "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(algorithm: "EdDSA"))
            let token = try scene.signUp().tokens!.idToken
            #expect(verifier.reason(token) == "INVALID_ID_TOKEN")
            #expect(try await verifier.verify(token.string).uid.isEmpty == false)
            #expect(verifier.reason(token) == "")
            await scene.channel.shutdown()
        }
    }

    @Test func aRevokedKeyIsDroppedAndItsSuccessorFetched() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let verifier = try await TokenVerifier(channel: scene.channel)
            let ada = try scene.signUp().tokens!
            #expect(verifier.reason(ada.idToken) == "")
            let keys: ProjectListSigningKeysResponse = try scene.admin.call(
                "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
            let keyID = try #require(keys.keys.first { $0.tokenUse == .idToken }?.keyID)
            let _: ProjectRevokeSigningKeyResponse = try scene.admin.call(
                "postern.v1.Project/RevokeSigningKey", ProjectRevokeSigningKeyRequest(keyID: keyID))
            try await verifier.becomes("INVALID_ID_TOKEN", ada.idToken)
            // This is done without `verify`, which would fetch the keys for an unknown one.
            let bob = try scene.signUp("bob@example.com").tokens!
            try await verifier.becomes("", bob.idToken)
            #expect(verifier.reason(ada.idToken) == "INVALID_ID_TOKEN")
            await scene.channel.shutdown()
        }
    }

    @Test func cookiesHaveAVerifierOfTheirOwn() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let ada = try scene.signUp()
            let made: TokensCreateSessionCookieResponse = try scene.admin.call(
                "postern.v1.Tokens/CreateSessionCookie",
                TokensCreateSessionCookieRequest(idToken: ada.tokens!.idToken))
            var options = VerifierOptions()
            options.tokenKind = .sessionCookie
            let verifier = try await TokenVerifier(channel: scene.channel, options: options)
            #expect(verifier.reason(made.sessionCookie) == "")
            #expect(verifier.reason(ada.tokens!.idToken) == "INVALID_SESSION_COOKIE")
            try scene.revoke(ada.user!.uid)
            try await verifier.becomes("TOKEN_EXPIRED", made.sessionCookie)
            await scene.channel.shutdown()
        }
    }

    // MARK: A feed that is cut

    @Test(arguments: [VerifierOptions.StalePolicy.refuse, .accept, .askServer])
    func aVerifierThatIsStaleDoesAsItWasTold(_ policy: VerifierOptions.StalePolicy) async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let ada = try scene.signUp()
            let token = ada.tokens!.idToken
            var options = VerifierOptions()
            options.whenStale = policy
            options.staleAfter = .zero
            let verifier = try await TokenVerifier(channel: scene.channel, options: options)
            verifier.stop()
            try scene.revoke(ada.user!.uid)
            let bob = try scene.signUp("bob@example.com").tokens!.idToken
            switch policy {
            case .refuse:
                #expect(verifier.reason(token) == "VERIFIER_STALE")
                await #expect(throws: Failure.self) { _ = try await verifier.verify(bob.string) }
            case .accept: #expect(verifier.reason(token) == "")
            case .askServer:
                #expect(verifier.reason(bob) == "VERIFIER_STALE")
                _ = try await verifier.verify(bob.string)
                await #expect(throws: Failure.self) { _ = try await verifier.verify(token.string) }
            }
            #expect(verifier.staleness > .zero)
            await scene.channel.shutdown()
        }
    }

    @Test func aConnectionThatDiedWithoutAWordIsGivenUpBeforeTheVerifierIsStale() throws {
        let channel = ChannelOptions()
        let heartbeat = VerifierOptions().heartbeat
        let asked = max(heartbeat, try #require(channel.keepalive))
        #expect(asked + channel.keepaliveTimeout < VerifierOptions().staleAfter)
    }

    @Test func afterARestartOfTheServerTheFeedGoesOnWhereItWas() async throws {
        try await withTemporaryDirectory { directory in
            let masterKey = MasterKey.generate(random: .system)
            let clock = ManualClock()
            let port = try freePort()
            let kept = Mutex<(TokenVerifier, Channel, Text, Text, Secret)?>(nil)
            try await withServer(directory: directory, clock: clock, masterKey: masterKey) { server in
                let scene = try Scene(server)
                let ada = try scene.signUp()
                let channel = try Channel(address: "127.0.0.1:\(port)", credentials: .apiKey(server.adminKey))
                let listener = try server.listen(port: port)
                defer { listener.close() }
                let verifier = try await TokenVerifier(channel: channel)
                let values = (verifier, channel, ada.user!.uid, ada.tokens!.idToken, server.adminKey)
                kept.withLock { $0 = values }
            }
            let (verifier, channel, uid, token, adminKey) = try #require(kept.withLock { $0 })
            #expect(verifier.reason(token) == "")
            try await withServer(
                directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey
            ) { server in
                // The session is revoked before the verifier is back: the revocation comes behind the cursor.
                try Scene(server).revoke(uid)
                let listener = try server.listen(port: port)
                defer { listener.close() }
                try await verifier.becomes("TOKEN_EXPIRED", token)
            }
            await channel.shutdown()
        }
    }
}
