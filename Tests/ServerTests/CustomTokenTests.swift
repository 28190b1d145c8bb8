import Base
import Crypto
import Identity
import JSON
import Messages
import Rules
import Store
import TestSupport
import Testing
import Tokens
import Wire

/// Signing in with a custom token: what a good token does, and how often.
@Suite struct CustomTokenTests {
    private func usedTokenCount(_ server: TestServer) throws -> Int {
        try server.project.store.read { Int(try $0.count(Tables.usedTokenIDs)) }
    }

    @Test(arguments: ["ES256", "RS256"] as [Text])
    func aNewUserHasTheUIDAndNothingElseAndAKnownOneIsEntered(algorithm: Text) async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, algorithm: algorithm)
            let first = try backEnd.signIn(backEnd.token())
            #expect(first.isNewUser && first.user?.uid == "u1" && first.user?.providers.isEmpty == true)
            #expect(first.user?.email.isEmpty == true)
            let idToken = claims(of: first.tokens?.idToken ?? .empty)
            #expect(idToken["sub"] == "u1" && idToken["firebase"]?["sign_in_provider"] == "custom")
            #expect(idToken["firebase"]?["identities"] == [:] && idToken["provider_id"] == nil)
            let again = try backEnd.signIn(backEnd.token())
            #expect(!again.isNewUser && again.user?.uid == "u1")
            let lookup: AccountsLookupResponse = try backEnd.client.call(
                "postern.v1.Accounts/Lookup", AccountsLookupRequest(idToken: again.tokens?.idToken ?? .empty))
            #expect(lookup.user?.uid == "u1")
        }
    }

    @Test func theClaimsAreInEveryIDTokenOfTheSessionAndOfNoOther() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            _ = try backEnd.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: "u1"), returning: UsersCreateResponse.self)
            _ = try backEnd.client.call(
                "postern.v1.Users/SetCustomClaims",
                UsersSetCustomClaimsRequest(uid: "u1", customClaimsJSON: [UInt8](#"{"plan":"free","team":7}"#.utf8)),
                returning: UsersSetCustomClaimsResponse.self)
            let wanted = backEnd.claims.with("claims", ["plan": "gold", "deep": ["a": [1, 2]]])
            var signedIn = try backEnd.signIn(backEnd.token(wanted)).tokens
            for _ in 0..<3 {
                let idToken = claims(of: signedIn?.idToken ?? .empty)
                #expect(idToken["plan"] == "gold" && idToken["deep"] == ["a": [1, 2]] && idToken["team"] == 7)
                #expect(idToken["firebase"]?["sign_in_provider"] == "custom")
                signedIn = try backEnd.client.call(
                    "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: signedIn?.refreshToken ?? .empty),
                    returning: TokensRefreshResponse.self
                ).tokens
            }
            let other = try backEnd.signIn(backEnd.token()).tokens
            let idToken = claims(of: other?.idToken ?? .empty)
            #expect(idToken["plan"] == "free" && idToken["deep"] == nil)
        }
    }

    // MARK: How often

    @Test func aTokenWithAnIDCountsOnceAndOneWithoutUntilItExpires() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let once = backEnd.token(backEnd.claims.with("jti", "j1"))
            _ = try backEnd.signIn(once)
            let failure = backEnd.refusal(once)
            #expect(failure.reason == "INVALID_CUSTOM_TOKEN" && failure.metadata("cause") == "USED")
            // The token's id counts, not its bytes.
            let other = backEnd.token(backEnd.claims.with("jti", "j1").with("uid", "u2"))
            #expect(backEnd.refusal(other).metadata("cause") == "USED")
            let neighbour = try BackEnd(server, id: "neighbour")
            _ = try neighbour.signIn(neighbour.token(neighbour.claims.with("jti", "j1")))
            let often = backEnd.token()
            for _ in 0..<3 { _ = try backEnd.signIn(often) }
            server.clock.advance(by: .seconds(3_600))
            #expect(backEnd.refusal(often).metadata("cause") == "EXPIRED")
        }
    }

    @Test func ofManyUsesAtTheSameTimeOneWins() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let request = AccountsSignInWithCustomTokenRequest(
                token: Secret(backEnd.token(backEnd.claims.with("jti", "j1")).bytes))
            let clients = try (0..<16).map { _ in try server.connect() }
            for client in clients {
                try client.send(
                    client.request(
                        "postern.v1.Accounts/SignInWithCustomToken", request, stream: client.nextStream()))
            }
            let reasons = try clients.map { client in
                let frame = try client.readFrame()
                return failure {
                    _ = try RawClient.response(frame, returning: AccountsSignInWithCustomTokenResponse.self)
                }.reason
            }
            #expect(reasons.sorted() == [""] + [String](repeating: "INVALID_CUSTOM_TOKEN", count: 15))
        }
    }

    @Test func aUsedIDOutlivesARestartAndGoesAMinuteAfterTheTokenExpired() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let (token, adminKey) = try await withServer(directory: directory, clock: clock, masterKey: masterKey) {
                let backEnd = try BackEnd($0)
                let token = backEnd.token(backEnd.claims.with("jti", "j1"))
                _ = try backEnd.signIn(token)
                return (token, $0.adminKey)
            }
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey) {
                let other = try BackEnd($0, id: "other")
                #expect(other.refusal(token).metadata("cause") == "USED")
                clock.advance(by: .seconds(3_659))
                await $0.project.sweep()
                #expect(try usedTokenCount($0) == 1)
                clock.advance(by: .seconds(1))
                await $0.project.sweep()
                #expect(try usedTokenCount($0) == 0)
                #expect(other.refusal(token).metadata("cause") == "EXPIRED")
            }
        }
    }

    @Test func aRefusedSignInLeavesTheIDUnused() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let identity = try IdentityClient(server)
            let token = backEnd.token(backEnd.claims.with("jti", "j1"))
            try identity.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            #expect(backEnd.refusal(token).reason == "ADMIN_RESTRICTED_OPERATION")
            let _: UsersCreateResponse = try backEnd.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: "u1", disabled: true))
            #expect(backEnd.refusal(token).reason == "USER_DISABLED")
            #expect(try usedTokenCount(server) == 0)
            try identity.update("u1", ["disabled"]) { $0.disabled = false }
            #expect(try backEnd.signIn(token).isNewUser == false)
        }
    }

    @Test func aLostAnswerIsGivenAgainUnderTheSameIdempotencyKey() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let token = backEnd.token(backEnd.claims.with("jti", "j1"))
            let request = AccountsSignInWithCustomTokenRequest(token: Secret(token.bytes))
            let key = [OutgoingMetadata.Entry(key: "idempotency-key", value: "k1")]
            let method = "postern.v1.Accounts/SignInWithCustomToken"
            let first: AccountsSignInWithCustomTokenResponse = try backEnd.client.call(method, request, metadata: key)
            let again: AccountsSignInWithCustomTokenResponse = try backEnd.client.call(method, request, metadata: key)
            #expect(first.tokens?.refreshToken == again.tokens?.refreshToken && again.user?.uid == "u1")
        }
    }

    // MARK: Toggles and logins

    @Test func theSignUpToggleRefusesNewUsersOnlyAndIsRecorded() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            _ = try backEnd.signIn(backEnd.token())
            try IdentityClient(server).setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            #expect(try backEnd.signIn(backEnd.token()).isNewUser == false)
            let failure = backEnd.refusal(backEnd.token(backEnd.claims.with("uid", "u2")))
            #expect(failure.reason == "ADMIN_RESTRICTED_OPERATION")
            let listed: TenantsListDenialsResponse = try backEnd.client.call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest())
            #expect(listed.denials.map(\.uid) == ["u2"])
            #expect(listed.denials.map(\.operation) == ["postern.v1.Accounts/SignInWithCustomToken"])
            #expect(throws: Failure.self) { try IdentityClient(server).get("u2") }
        }
    }

    @Test func whoCameByACustomTokenNeedsARecentLoginThoughWithoutProviders() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let old = try backEnd.signIn(backEnd.token()).tokens?.idToken ?? .empty
            server.clock.advance(by: .minutes(6))
            let delete: (Text) throws -> Void = { idToken in
                let _: AccountsDeleteResponse = try backEnd.client.call(
                    "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: idToken))
            }
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { try delete(old) }
            try delete(try backEnd.signIn(backEnd.token()).tokens?.idToken ?? .empty)
        }
    }

    // MARK: The signer

    enum End: CaseIterable { case keyRevoked, accountDisabled, accountDeleted, customTokensTakenAway }

    @Test(arguments: End.allCases) func whatEndsTheSignerEndsItsTokensAtOnceEverywhere(_ end: End) async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let others = try (0..<4).map { _ in try server.connect() }
            let request = AccountsSignInWithCustomTokenRequest(token: Secret(backEnd.token().bytes))
            let method = "postern.v1.Accounts/SignInWithCustomToken"
            for other in others { let _: AccountsSignInWithCustomTokenResponse = try other.call(method, request) }
            switch end {
            case .keyRevoked: try backEnd.revokeKey()
            case .accountDisabled: try backEnd.update(["disabled"]) { $0.disabled = true }
            case .accountDeleted: try backEnd.delete()
            case .customTokensTakenAway: try backEnd.update(["custom_tokens"]) { $0.customTokens = false }
            }
            for other in others {
                let refused = failure {
                    let _: AccountsSignInWithCustomTokenResponse = try other.call(method, request)
                }
                #expect(refused.reason == "INVALID_CUSTOM_TOKEN" && refused.metadata("cause") == "NOT_AUTHENTIC")
            }
            guard end == .accountDisabled || end == .customTokensTakenAway else { return }
            try backEnd.update(["disabled", "custom_tokens"]) { $0.customTokens = true }
            _ = try backEnd.signIn(backEnd.token())
        }
    }

    @Test func aSignerThatEndsBetweenProofAndWriteDoesNotSignIn() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let project = server.project
            let settings = try project.store.read { try project.tenants.settings(of: .empty, in: $0) }
            let verified = try project.customTokens.verify(
                Secret(backEnd.token().bytes), settings: settings, now: server.clock.clock.now())
            try backEnd.revokeKey()
            await #expect(throws: Failure.self) {
                try await project.signIns.signIn(
                    VerifiedBefore(
                        token: verified,
                        method: CustomTokenSignIn(token: .empty, customTokens: project.customTokens)),
                    EndUserRequest(
                        caller: nil, settings: settings, origin: .server, operation: "test",
                        deadline: .now.advanced(by: .seconds(10))))
            }
            #expect(throws: Failure.self) { try IdentityClient(server).get("u1") }
        }
    }

    @Test func aKeyCountsUntilItExpires() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, keyLifetimeSeconds: 60)
            let token = backEnd.token()
            server.clock.advance(by: .seconds(59))
            _ = try backEnd.signIn(token)
            server.clock.advance(by: .seconds(1))
            #expect(backEnd.refusal(token).metadata("cause") == "NOT_AUTHENTIC")
        }
    }

    @Test func aTokenIsForItsTenantAndItsSignersTenants() async throws {
        try await withServer { server in
            let all = try BackEnd(server)
            try all.makeTenant("acme")
            try all.makeTenant("other")
            let bound = try BackEnd(server, id: "acme-only", scope: Scope(tenants: .tenantID("acme")))
            let pool = try BackEnd(server, id: "pool-only", scope: Scope(tenants: .tenantID("")))
            func reason(_ backEnd: BackEnd, _ claim: JSONValue?, _ tenantID: Text) -> String {
                backEnd.refusal(backEnd.token(backEnd.claims.with("tenant_id", claim)), tenantID: tenantID).reason
            }
            #expect(reason(all, "acme", "acme") == "" && reason(all, nil, "") == "" && reason(all, "", "") == "")
            #expect(reason(bound, "acme", "acme") == "" && reason(pool, nil, "") == "")
            let foreign: [(JSONValue?, Text)] = [(nil, "acme"), ("", "acme"), ("other", "acme"), ("acme", "")]
            for (claim, tenantID) in foreign {
                #expect(reason(all, claim, tenantID) == "TENANT_ID_MISMATCH")
            }
            #expect(reason(bound, nil, "acme") == "TENANT_ID_MISMATCH")
            // A claim that is no tenant's id is not repeated.
            let nonsense = all.claims.with("tenant_id", "a\u{202E}b")
            let unnamed = all.refusal(all.token(nonsense), tenantID: "acme")
            #expect(unnamed.reason == "TENANT_ID_MISMATCH" && unnamed.metadata("tenant") == nil)
            #expect(!unnamed.message.contains("\u{202E}"))
            for (backEnd, tenantID) in [(bound, "other"), (bound, ""), (pool, "acme")] as [(BackEnd, Text)] {
                #expect(reason(backEnd, .string(tenantID), tenantID) == "CREDENTIAL_MISMATCH")
            }
        }
    }
}
