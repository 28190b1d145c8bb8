import Base
import Identity
import Messages
import Store
import TestSupport
import Testing
import Wire

/// A signed-in user's change whose answer was lost, asked for again with the same idempotency-key.
@Suite struct RepeatedChangeTests {
    private func key(_ text: Text) -> [OutgoingMetadata.Entry] {
        [OutgoingMetadata.Entry(key: "idempotency-key", value: text)]
    }

    private func update(
        _ client: IdentityClient, _ idToken: Text, _ paths: [Text], key: Text = "k1",
        _ change: (inout AccountsUpdateRequest) -> Void
    ) throws -> AccountsUpdateResponse {
        var request = AccountsUpdateRequest(idToken: idToken, updateMask: ProtobufFieldMask(paths: paths))
        change(&request)
        return try client.client.call("postern.v1.Accounts/Update", request, metadata: self.key(key))
    }

    private func changePassword(_ client: IdentityClient, _ idToken: Text) throws -> AccountsUpdateResponse {
        try update(client, idToken, ["password"]) { $0.password = Secret("another horse") }
    }

    @Test(arguments: [RefreshMode.rotate, .reuse])
    func aLostPasswordChangeGetsTokensOfItsSessionUntilTheyAreUsed(_ mode: RefreshMode) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["refresh_mode"]) { $0.refreshMode = mode }
            let made = try client.signUp("ann@example.com").tokens!
            server.clock.advance(by: .seconds(1))
            let first = try changePassword(client, made.idToken)
            // The change ended the token with which it was requested.
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(made.idToken) }
            // After this the token has expired, too.
            server.clock.advance(by: .seconds(3_599))
            let again = try changePassword(client, made.idToken)
            #expect(again.user == first.user)
            #expect(again.tokens?.refreshToken == first.tokens?.refreshToken)
            _ = try client.lookup(again.tokens!.idToken)
            expectRefusal("IDEMPOTENCY_KEY_REUSED") {
                _ = try update(client, made.idToken, ["password"]) { $0.password = Secret("a third horse") }
            }
            server.clock.advance(by: .seconds(1))
            _ = try client.refresh(again.tokens!.refreshToken)
            expectRefusal("ALREADY_DONE") { _ = try changePassword(client, made.idToken) }
        }
    }

    @Test func afterAnHourALostChangeStaysLost() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ann@example.com").tokens!
            let other = try client.signUp("bob@example.com").tokens!
            _ = try changePassword(client, made.idToken)
            try delete(client, other.idToken)
            server.clock.advance(by: .seconds(3_600))
            _ = try changePassword(client, made.idToken)
            try delete(client, other.idToken)
            server.clock.advance(by: .seconds(1))
            expectRefusal("ALREADY_DONE") { _ = try changePassword(client, made.idToken) }
            expectRefusal("ALREADY_DONE") { try delete(client, other.idToken) }
        }
    }

    @Test func onlyWhoMadeTheChangeGetsItsAnswerAgain() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ann@example.com").tokens!
            server.clock.advance(by: .seconds(1))
            _ = try changePassword(client, made.idToken)
            // The same token without the key, under another key, or from another caller is only a dead token.
            expectRefusal("TOKEN_EXPIRED") {
                _ = try update(client, made.idToken, ["password"], key: "k2") { $0.password = Secret("another horse") }
            }
            let created: ProjectCreateApiKeyResponse = try client.client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true))))
            let stranger = try IdentityClient(server)
            stranger.client.apiKey = created.secretKey
            expectRefusal("TOKEN_EXPIRED") { _ = try changePassword(stranger, made.idToken) }
            // Another token is another request.
            let other = try client.signIn("ann@example.com", password: "another horse").tokens!
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try changePassword(client, other.idToken) }
        }
    }

    /// The request's own bytes already vouch for its token. Only this test shows that the token is checked as well.
    @Test func theTokenOfARepeatIsGenuineAndOfTheSameSession() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ann@example.com").tokens!
            let other = try client.signIn("ann@example.com").tokens!
            let changed = try changePassword(client, made.idToken).tokens!
            let request = AccountsUpdateRequest(
                idToken: made.idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                password: Secret("another horse")
            ).encoded()
            let listed: ProjectListApiKeysResponse = try client.client.call(
                "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest())
            let project = server.project
            let idempotency = try [UInt8]("k1".utf8).withUnsafeBytes { key in
                try request.withUnsafeBytes { request in
                    try Idempotency(
                        key: key, caller: listed.apiKeys[0].apiKeyID, tenantID: .empty,
                        method: "postern.v1.Accounts/Update", request: request, endUser: [],
                        hashKey: project.idempotencyHashKey, limits: project.limits)
                }
            }
            let origin = Origin(actor: .empty, requestID: .empty, peerAddress: .empty, idempotency: idempotency)
            let settings = try project.store.read { try project.tenants.settings(of: .empty, in: $0) }
            func reasonOfRepeating(with idToken: Text) async throws -> String? {
                do {
                    var repeated = EndUserRequest(
                        caller: nil, settings: settings, origin: origin, operation: "postern.v1.Accounts/Update",
                        deadline: .distantFuture)
                    repeated.idToken = idToken
                    let again = try await project.repeatedChanges.answer(to: repeated)
                    return again?.tokens.refreshToken.string
                } catch let failure as Failure {
                    return failure.reason
                }
            }
            var forged = made.idToken.bytes
            let last = forged.count - 2
            forged[last] = forged[last] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(try await reasonOfRepeating(with: Text(unchecked: forged)) == "INVALID_ID_TOKEN")
            #expect(try await reasonOfRepeating(with: other.idToken) == "INVALID_ID_TOKEN")
            #expect(try await reasonOfRepeating(with: made.idToken) == changed.refreshToken.string)
        }
    }

    @Test func whatWasRevokedSinceIsNotGivenAgain() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ann@example.com")
            _ = try changePassword(client, made.tokens!.idToken)
            let _: UsersRevokeTokensResponse = try client.client.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: made.user!.uid))
            expectRefusal("ALREADY_DONE") { _ = try changePassword(client, made.tokens!.idToken) }
        }
    }

    @Test func aProfileChangeIsMadeOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ann@example.com").tokens!.idToken
            let first = try update(client, idToken, ["display_name"]) { $0.displayName = "Ann" }
            _ = try update(client, idToken, ["display_name"], key: "k2") { $0.displayName = "Bob" }
            let again = try update(client, idToken, ["display_name"]) { $0.displayName = "Ann" }
            #expect(again == first)
            #expect(try client.lookup(idToken).displayName == "Bob")
            expectRefusal("IDEMPOTENCY_KEY_REUSED") {
                _ = try update(client, idToken, ["display_name"]) { $0.displayName = "Eve" }
            }
            // A request that is only validated uses no key up.
            _ = try update(client, idToken, ["display_name"], key: "k3") {
                $0.displayName = "Eve"
                $0.validateOnly = true
            }
            let made = try update(client, idToken, ["display_name"], key: "k3") { $0.displayName = "Eve" }
            #expect(made.user?.displayName == "Eve")
        }
    }

    @Test func linkingAndUnlinkingAreDoneOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let anonymous = try client.signUp()
            func link() throws -> AccountsSignUpResponse {
                try client.client.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(
                        email: "ann@example.com", password: Secret("secret1"), idToken: anonymous.tokens!.idToken),
                    metadata: key("k1"))
            }
            let linked = try link()
            #expect(linked.user?.uid == anonymous.user?.uid)
            #expect(try link().tokens?.refreshToken == linked.tokens?.refreshToken)
            func unlink() throws -> AccountsUnlinkResponse {
                try client.client.call(
                    "postern.v1.Accounts/Unlink",
                    AccountsUnlinkRequest(idToken: linked.tokens!.idToken, providerID: "password", force: true),
                    metadata: key("k1"))
            }
            let unlinked = try unlink()
            #expect(try unlink().tokens?.refreshToken == unlinked.tokens?.refreshToken)
            expectRefusal("ALREADY_DONE") { _ = try link() }
        }
    }

    @Test func credentialsThatCountOnceAreNotAskedForAgain() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            var idToken = try client.signUp("ada@gmail.com").tokens!.idToken
            try client.sendOob(.emailSignin, email: "ada@gmail.com")
            let code = try client.mails()[0].code
            func link() throws -> AccountsSignInWithEmailLinkResponse {
                try client.client.call(
                    "postern.v1.Accounts/SignInWithEmailLink",
                    AccountsSignInWithEmailLinkRequest(email: "ada@gmail.com", oobCode: code, idToken: idToken),
                    metadata: key("k1"))
            }
            let linked = try link()
            #expect(try link().tokens?.refreshToken == linked.tokens?.refreshToken)
            idToken = linked.tokens!.idToken
            let credential = client.credential(.google())
            func linkGoogle() throws -> AccountsSignInWithIdpResponse {
                try client.client.call(
                    "postern.v1.Accounts/SignInWithIdp",
                    AccountsSignInWithIdpRequest(credential: credential, idToken: idToken), metadata: key("k1"))
            }
            let joined = try linkGoogle()
            // The pending token has expired.
            server.clock.advance(by: .seconds(660))
            let again = try linkGoogle()
            #expect(again.user == joined.user && again.tokens?.refreshToken == joined.tokens?.refreshToken)
            #expect(joined.provider?.providerID == "google.com" && again.provider == nil)
        }
    }

    @Test func provingOneselfAgainIsDoneOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ann@example.com").tokens!.idToken
            func prove() throws -> AccountsReauthenticateResponse {
                let credential = EmailPasswordCredential(email: "ann@example.com", password: Secret("correct horse"))
                return try client.client.call(
                    "postern.v1.Accounts/Reauthenticate",
                    AccountsReauthenticateRequest(idToken: idToken, credential: .password(credential)),
                    metadata: key("k1"))
            }
            let first = try prove()
            server.clock.advance(by: .seconds(20))
            let again = try prove()
            #expect(again.tokens?.refreshToken == first.tokens?.refreshToken)
            // The login is as old as the first proof, not the repeat.
            server.clock.advance(by: .seconds(281))
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") {
                _ = try client.signIn(.google(), linkingTo: again.tokens!.idToken)
            }
        }
    }

    private func delete(_ client: IdentityClient, _ idToken: Text, key: Text? = "k1") throws {
        let _: AccountsDeleteResponse = try client.client.call(
            "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: idToken),
            metadata: key.map { self.key($0) } ?? [])
    }

    @Test func anAccountIsDeletedOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ann@example.com").tokens!.idToken
            try delete(client, idToken)
            try delete(client, idToken)
            expectRefusal("USER_NOT_FOUND") { try delete(client, idToken, key: nil) }
            expectRefusal("USER_NOT_FOUND") { try delete(client, idToken, key: "k2") }
        }
    }
}
