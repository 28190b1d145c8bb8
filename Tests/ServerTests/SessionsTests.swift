import Base
import Identity
import Messages
import Service
import TestSupport
import Testing

/// Sessions that a user can see and end.
@Suite struct SessionsTests {
    private static func list(_ client: IdentityClient, _ tokens: TokenPair) throws -> [Session] {
        let listed: SessionsListResponse = try client.client.call(
            "postern.v1.Sessions/List", SessionsListRequest(idToken: tokens.idToken))
        return listed.sessions
    }

    private static func revoke(
        _ client: IdentityClient, _ tokens: TokenPair, _ target: SessionsRevokeRequest.Target?
    ) throws -> Int32 {
        let revoked: SessionsRevokeResponse = try client.client.call(
            "postern.v1.Sessions/Revoke", SessionsRevokeRequest(idToken: tokens.idToken, target: target))
        return revoked.revokedCount
    }

    private static func signOut(_ client: IdentityClient, _ request: SessionsSignOutRequest) throws {
        let _: SessionsSignOutResponse = try client.client.call("postern.v1.Sessions/SignOut", request)
    }

    /// Signs in on a device, a moment later.
    private static func signIn(_ client: IdentityClient, device: Text, address: Text = .empty) throws -> TokenPair {
        client.server.clock.advance(by: .seconds(1))
        let signedIn: AccountsSignInWithPasswordResponse = try client.client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(
                email: "ada@example.com", password: Secret("correct horse"), endUserIP: address, deviceName: device))
        return try #require(signedIn.tokens)
    }

    @Test func aUserSeesItsSessionsTheOneUsedLastFirst() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let laptop = try Self.signIn(client, device: "laptop")
            let phone = try Self.signIn(client, device: "phone")
            server.clock.advance(by: .seconds(1))
            let refreshed = try client.refresh(laptop.refreshToken).tokens!
            let sessions = try Self.list(client, phone)
            #expect(sessions.map(\.deviceName) == ["laptop", "phone", ""])
            #expect(sessions.map(\.current) == [false, true, false])
            #expect(sessions.allSatisfy { $0.signInProvider == "password" && $0.sessionID.byteCount == 32 })
            #expect(sessions[0].lastUsedAtMicros > sessions[0].createdAtMicros)
            #expect(sessions[0].expiresAtMicros == sessions[0].lastUsedAtMicros + 30 * 86_400_000_000)
            #expect(try Self.list(client, refreshed).map(\.current) == [true, false, false])
        }
    }

    @Test func aUserTellsWhenTheNewestOfItsSessionsWasUsed() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let uid = try #require(made.user).uid
            let laptop = try Self.signIn(client, device: "laptop")
            server.clock.advance(by: .seconds(60))
            let time = server.clock.clock.now().microseconds
            _ = try client.refresh(try #require(made.tokens).refreshToken)
            server.clock.advance(by: .seconds(60))
            let second = time..<(time + 1_000_000)
            let seen = try client.lookup(laptop.idToken)
            #expect(second.contains(seen.lastRefreshAtMicros) && seen.lastSignInAtMicros < time)
            let asked: UsersGetResponse = try client.client.call(
                "postern.v1.Users/Get", UsersGetRequest(uid: uid, includeLastRefresh: true))
            #expect(asked.user?.lastRefreshAtMicros == seen.lastRefreshAtMicros)
            #expect(try client.get(uid).lastRefreshAtMicros == 0)
        }
    }

    @Test func anAddressIsKeptFromACallerThatIsBelieved() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            _ = try Self.signIn(client, device: "laptop", address: "203.0.113.7")
            let made: ProjectCreateApiKeyResponse = try client.client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true)), trustedEndUserIP: true))
            client.client.apiKey = made.secretKey
            let trusted = try Self.signIn(client, device: "phone", address: "203.0.113.7")
            #expect(try Self.list(client, trusted).map(\.endUserIP) == ["203.0.113.7", "", ""])
        }
    }

    @Test func aDevicesNameIsShort() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let name = Text(String(repeating: "x", count: 257))
            expectRefusal("INVALID_DISPLAY_NAME") { _ = try Self.signIn(client, device: name) }
        }
    }

    @Test func aRevokedSessionIsRefusedFromTheAnswerOn() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let laptop = try Self.signIn(client, device: "laptop")
            let phone = try Self.signIn(client, device: "phone")
            let id = try #require(try Self.list(client, phone).first { $0.deviceName == "laptop" }).sessionID
            #expect(try Self.revoke(client, phone, .sessionID(id)) == 1)
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(laptop.idToken) }
            let refused = failure { _ = try client.refresh(laptop.refreshToken) }
            #expect(refused.metadata("cause") == "SIGNED_OUT")
            _ = try client.lookup(phone.idToken)
            #expect(try Self.revoke(client, phone, .sessionID(id)) == 0)
            #expect(try Self.list(client, phone).map(\.deviceName) == ["phone", ""])
        }
    }

    @Test func allOthersAreSignedOutAtOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let first = try client.signUp("ada@example.com").tokens!
            let second = try Self.signIn(client, device: "laptop")
            let kept = try Self.signIn(client, device: "phone")
            #expect(try Self.revoke(client, kept, .allOthers(true)) == 2)
            for tokens in [first, second] {
                expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(tokens.idToken) }
            }
            #expect(try Self.list(client, kept).count == 1)
        }
    }

    @Test func anotherUsersSessionIsNoneOfMine() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let ada = try client.signUp("ada@example.com").tokens!
            let bob = try client.signUp("bob@example.com").tokens!
            let id = try Self.list(client, bob)[0].sessionID
            expectRefusal("SESSION_NOT_FOUND") { _ = try Self.revoke(client, ada, .sessionID(id)) }
            expectRefusal("SESSION_NOT_FOUND") { _ = try Self.revoke(client, ada, .sessionID("no id")) }
            expectRefusal("MISSING_SESSION_ID") { _ = try Self.revoke(client, ada, nil) }
            expectRefusal("MISSING_SESSION_ID") { _ = try Self.revoke(client, ada, .allOthers(false)) }
            _ = try client.lookup(bob.idToken)
        }
    }

    enum Proof: CaseIterable { case idToken, expiredIDToken, refreshToken, usedRefreshToken }

    @Test(arguments: Proof.allCases)
    func signingOutTakesWhateverTokenIsLeft(_ proof: Proof) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let tokens = try Self.signIn(client, device: "laptop")
            let other = try Self.signIn(client, device: "phone")
            var latest = tokens
            var request = SessionsSignOutRequest()
            switch proof {
            case .idToken: request.idToken = tokens.idToken
            case .expiredIDToken:
                server.clock.advance(by: .minutes(90))
                request.idToken = tokens.idToken
            case .refreshToken: request.refreshToken = tokens.refreshToken
            case .usedRefreshToken:
                latest = try client.refresh(tokens.refreshToken).tokens!
                request.refreshToken = tokens.refreshToken
            }
            try Self.signOut(client, request)
            let refused = failure { _ = try client.refresh(latest.refreshToken) }
            #expect(refused.reason == "TOKEN_EXPIRED" && refused.metadata("cause") == "SIGNED_OUT")
            // A client that lost the answer may repeat the call.
            try Self.signOut(client, request)
            _ = try client.refresh(other.refreshToken)
        }
    }

    @Test func signingOutNeedsATokenOfOurs() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try client.signUp("ada@example.com").tokens!
            expectRefusal("MISSING_TOKEN") { try Self.signOut(client, SessionsSignOutRequest()) }
            expectRefusal("INVALID_ID_TOKEN") { try Self.signOut(client, SessionsSignOutRequest(idToken: "x.y.z")) }
            expectRefusal("INVALID_REFRESH_TOKEN") {
                try Self.signOut(client, SessionsSignOutRequest(refreshToken: "nonsense"))
            }
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            expectRefusal("TENANT_ID_MISMATCH") {
                try Self.signOut(client, SessionsSignOutRequest(tenantID: "acme", idToken: tokens.idToken))
            }
            expectRefusal("TENANT_ID_MISMATCH") {
                try Self.signOut(client, SessionsSignOutRequest(tenantID: "acme", refreshToken: tokens.refreshToken))
            }
            _ = try client.lookup(tokens.idToken)
        }
    }

    @Test func aSessionThatEndedMakesRoomBeforeOneThatLives() async throws {
        try await withServer(configure: { $0.limits.sessionsPerUserMax = 2 }) { server in
            let client = try IdentityClient(server)
            let desk = try #require(try client.signUp("ada@example.com").tokens)
            let phone = try Self.signIn(client, device: "phone")
            try Self.signOut(client, SessionsSignOutRequest(idToken: phone.idToken))
            let laptop = try Self.signIn(client, device: "laptop")
            server.clock.advance(by: .seconds(1))
            let refreshed = try #require(try client.refresh(desk.refreshToken).tokens)
            expectRefusal("TOKEN_EXPIRED", cause: "SIGNED_OUT") { _ = try client.refresh(phone.refreshToken) }
            // Both sessions live now, and the desk was used later.
            _ = try Self.signIn(client, device: "tablet")
            expectRefusal("TOKEN_EXPIRED", cause: "SIGNED_OUT") { _ = try client.refresh(laptop.refreshToken) }
            _ = try client.lookup(refreshed.idToken)
        }
    }

    @Test func anAdminSeesAndEndsAUsersSessions() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            let laptop = try Self.signIn(client, device: "laptop")
            let listed: UsersListSessionsResponse = try client.client.call(
                "postern.v1.Users/ListSessions", UsersListSessionsRequest(uid: uid))
            #expect(listed.sessions.map(\.deviceName) == ["laptop", ""])
            #expect(listed.sessions.allSatisfy { !$0.current })
            func revoke(_ uid: Text, _ id: Text) throws {
                let _: UsersRevokeSessionResponse = try client.client.call(
                    "postern.v1.Users/RevokeSession", UsersRevokeSessionRequest(uid: uid, sessionID: id))
            }
            try revoke(uid, listed.sessions[0].sessionID)
            let refused = failure { _ = try client.refresh(laptop.refreshToken) }
            #expect(refused.metadata("cause") == "ADMIN")
            expectRefusal("SESSION_NOT_FOUND") { try revoke(uid, "00") }
            expectRefusal("USER_NOT_FOUND") { try revoke("nobody", listed.sessions[0].sessionID) }
            let other = try client.signUp("bob@example.com").user!.uid
            expectRefusal("SESSION_NOT_FOUND") { try revoke(other, listed.sessions[1].sessionID) }
        }
    }
}
