import Base
import Crypto
import Identity
import Messages
import TestSupport
import Testing

/// Refreshing and verifying, through every way a token can end.
@Suite struct TokensTests {
    private static func refresh(
        _ client: IdentityClient, _ token: Text, attempt: [UInt8] = []
    ) throws -> TokensRefreshResponse {
        try client.client.call(
            "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: token, attemptID: attempt))
    }

    private static func verify(
        _ client: IdentityClient, _ token: Text, tenantID: Text = .empty, anyTenant: Bool = false
    ) throws -> TokensVerifyIdTokenResponse {
        try client.client.call(
            "postern.v1.Tokens/VerifyIdToken",
            TokensVerifyIdTokenRequest(tenantID: tenantID, idToken: token, anyTenant: anyTenant))
    }

    private static let attempt = [UInt8](repeating: 7, count: 16)

    // MARK: Refreshing

    @Test func aRefreshRotatesAndKeepsTheLoginTime() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try client.signUp("ada@example.com").tokens!
            let authTime = try Self.verify(client, tokens.idToken).authTimeMicros
            server.clock.advance(by: .seconds(1_000))
            let next = try Self.refresh(client, tokens.refreshToken)
            #expect(next.outcome == .rotated)
            #expect(next.tokens!.refreshToken != tokens.refreshToken)
            let verified = try Self.verify(client, next.tokens!.idToken)
            #expect(verified.authTimeMicros == authTime)
            #expect(verified.expiresAtMicros > authTime + 4_000_000_000)
        }
    }

    @Test func aLostAnswerIsGivenAgainHoweverLate() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try client.signUp("ada@example.com").tokens!
            let lost = try Self.refresh(client, tokens.refreshToken, attempt: Self.attempt)
            server.clock.advance(by: .hours(24 * 20))
            let again = try Self.refresh(client, tokens.refreshToken, attempt: Self.attempt)
            #expect(again.outcome == .repeatedAfterLoss)
            #expect(again.tokens!.refreshToken == lost.tokens!.refreshToken)
            #expect(try Self.refresh(client, again.tokens!.refreshToken).outcome == .rotated)
        }
    }

    @Test func aSecondHolderWithinTenSecondsGetsTheSameSuccessor() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try client.signUp("ada@example.com").tokens!
            let first = try Self.refresh(client, tokens.refreshToken)
            server.clock.advance(by: .seconds(10))
            let second = try Self.refresh(client, tokens.refreshToken)
            #expect(second.outcome == .repeatedWithinGrace)
            #expect(second.tokens!.refreshToken == first.tokens!.refreshToken)
        }
    }

    @Test func reuseAfterTheGraceEndsExactlyThatSession() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let stolen = try client.signUp("ada@example.com").tokens!
            let other = try client.signIn("ada@example.com").tokens!
            let owner = try Self.refresh(client, stolen.refreshToken).tokens!
            server.clock.advance(by: .seconds(11))
            for token in [stolen.refreshToken, owner.refreshToken] {
                expectRefusal("TOKEN_EXPIRED", cause: "REVOKED_BY_REUSE") { _ = try Self.refresh(client, token) }
            }
            expectRefusal("TOKEN_EXPIRED", cause: "REVOKED_BY_REUSE") { _ = try Self.verify(client, owner.idToken) }
            #expect(try Self.refresh(client, other.refreshToken).outcome == .rotated)
        }
    }

    @Test func aSessionEndsWhenIdleTooLongOrTooOld() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["session_idle_seconds", "session_absolute_seconds"]) {
                $0.sessionIdleSeconds = 1_000
                $0.sessionAbsoluteSeconds = 2_500
            }
            let idle = try client.signUp("ada@example.com").tokens!
            var busy = try client.signIn("ada@example.com").tokens!
            for _ in 0..<3 {
                server.clock.advance(by: .seconds(800))
                busy = try Self.refresh(client, busy.refreshToken).tokens!
            }
            server.clock.advance(by: .seconds(101))
            for token in [idle.refreshToken, busy.refreshToken] {
                let refused = failure { _ = try Self.refresh(client, token) }
                #expect(refused.reason == "TOKEN_EXPIRED" && refused.metadata("cause") == "EXPIRED")
            }
        }
    }

    @Test func aTenantThatReusesKeepsTheTokenTheSame() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["refresh_mode"]) { $0.refreshMode = .reuse }
            let tokens = try client.signUp("ada@example.com").tokens!
            for _ in 0..<3 {
                server.clock.advance(by: .seconds(100))
                let next = try Self.refresh(client, tokens.refreshToken)
                #expect(next.outcome == .reused && next.tokens!.refreshToken == tokens.refreshToken)
            }
        }
    }

    /// The first use is written, and then one an hour.
    @Test func whereTokensAreReusedFewUsesAreWritten() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["refresh_mode"]) { $0.refreshMode = .reuse }
            let tokens = try client.signUp("ada@example.com").tokens!
            var idToken = tokens.idToken
            func listed() throws -> Session {
                let answer: SessionsListResponse = try client.client.call(
                    "postern.v1.Sessions/List", SessionsListRequest(idToken: idToken))
                return answer.sessions[0]
            }
            func lastUse(after pause: Duration) throws -> Int64 {
                server.clock.advance(by: pause)
                idToken = try Self.refresh(client, tokens.refreshToken).tokens!.idToken
                return try listed().lastUsedAtMicros
            }
            let signedUpAt = try listed().createdAtMicros
            let first = try lastUse(after: .seconds(1))
            #expect(first == signedUpAt + 1_000_000)
            #expect(try lastUse(after: .minutes(59)) == first)
            #expect(try lastUse(after: .minutes(1)) == first + 3_600_000_000)
            // A use that is not written is checked all the same.
            let _: SessionsSignOutResponse = try client.client.call(
                "postern.v1.Sessions/SignOut", SessionsSignOutRequest(idToken: idToken))
            expectRefusal("TOKEN_EXPIRED", cause: "SIGNED_OUT") {
                _ = try Self.refresh(client, tokens.refreshToken)
            }
        }
    }

    @Test func whatIsNoRefreshTokenOfOursIsRefused() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try client.signUp("ada@example.com").tokens!
            let good = tokens.refreshToken.bytes
            func reason(_ bytes: [UInt8], attempt: [UInt8] = []) -> String {
                failure { _ = try Self.refresh(client, Text(unchecked: bytes), attempt: attempt) }.reason
            }
            #expect(reason([]) == "INVALID_REFRESH_TOKEN")
            #expect(reason(tokens.idToken.bytes) == "INVALID_REFRESH_TOKEN")
            for index in stride(from: 0, to: good.count - 1, by: 3) {
                var altered = good
                altered[index] = altered[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
                #expect(reason(altered) == "INVALID_REFRESH_TOKEN", "altered at \(index)")
                #expect(reason(Array(good[..<index])) == "INVALID_REFRESH_TOKEN", "cut at \(index)")
            }
            #expect(reason(good, attempt: [1, 2, 3]) == "INVALID_ATTEMPT_ID")
            #expect(reason(good) == "")
        }
    }

    @Test func refreshingFollowsTheAccount() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let uid = made.user!.uid
            try client.update(uid, ["display_name"]) { $0.displayName = "Ada" }
            let next = try Self.refresh(client, made.tokens!.refreshToken).tokens!
            let claims = String(decoding: try Self.verify(client, next.idToken).claimsJSON, as: UTF8.self)
            #expect(claims.contains(#""name":"Ada""#))
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            expectRefusal("USER_DISABLED") { _ = try Self.refresh(client, next.refreshToken) }
        }
    }

    @Test func aRefreshTokenIsOfOneTenant() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let tokens = try client.signUp("ada@example.com").tokens!
            let refused = failure {
                let _: TokensRefreshResponse = try client.client.call(
                    "postern.v1.Tokens/Refresh",
                    TokensRefreshRequest(tenantID: "acme", refreshToken: tokens.refreshToken))
            }
            #expect(refused.reason == "TENANT_ID_MISMATCH")
            let verified = failure { _ = try Self.verify(client, tokens.idToken, tenantID: "acme") }
            #expect(verified.reason == "TENANT_ID_MISMATCH")
            for told in [refused, verified] {
                #expect(told.message == "The token is of the default pool; the request is for tenant \"acme\".")
                #expect(told.metadata("tenant") == "")
            }
            // Nothing is told of a token that is not proved to be the project's.
            let claims = Base64.url.encode([UInt8](#"{"sub":"u1","firebase":{"tenant":"acme"}}"#.utf8))
            let parts = tokens.idToken.string.split(separator: ".")
            let forged = Text("\(parts[0]).\(String(decoding: claims, as: UTF8.self)).\(parts[2])")
            let unproved = failure { _ = try Self.verify(client, forged) }
            #expect(unproved.reason == "INVALID_ID_TOKEN" && unproved.metadata("tenant") == nil)
            #expect(try Self.verify(client, tokens.idToken, tenantID: "acme", anyTenant: true).tenantID == "")
        }
    }

    // MARK: Verifying

    @Test func aTokenLivesForAnHour() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try client.signUp("ada@example.com").tokens!
            server.clock.advance(by: .seconds(3_599))
            _ = try Self.verify(client, tokens.idToken)
            server.clock.advance(by: .seconds(1))
            let refused = failure { _ = try Self.verify(client, tokens.idToken) }
            #expect(refused.reason == "TOKEN_EXPIRED" && refused.metadata("cause") == "EXPIRED")
        }
    }

    @Test func revocationBindsTheNextVerification() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            _ = try Self.verify(client, made.tokens!.idToken)
            let _: UsersRevokeTokensResponse = try client.client.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: made.user!.uid))
            expectRefusal("TOKEN_EXPIRED", cause: "ADMIN") { _ = try Self.verify(client, made.tokens!.idToken) }
            // A sign-in afterwards is not affected, even within the same microsecond.
            let again = try client.signIn("ada@example.com")
            _ = try Self.verify(client, again.tokens!.idToken)
            try client.update(made.user!.uid, ["disabled"]) { $0.disabled = true }
            expectRefusal("USER_DISABLED") { _ = try Self.verify(client, again.tokens!.idToken) }
        }
    }

    @Test func anAlteredTokenIsNone() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let good = try client.signUp("ada@example.com").tokens!.idToken.bytes
            for index in stride(from: 0, to: good.count, by: 11) {
                var altered = good
                altered[index] = altered[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
                expectRefusal("INVALID_ID_TOKEN") { _ = try Self.verify(client, Text(unchecked: altered)) }
            }
            expectRefusal("MISSING_ID_TOKEN") { _ = try Self.verify(client, "") }
        }
    }

    @Test func aReusedUidDoesNotReviveOldTokens() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let uid = made.user!.uid
            let _: UsersDeleteResponse = try client.client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: uid, email: "ada@example.com"))
            expectRefusal("TOKEN_EXPIRED") { _ = try Self.verify(client, made.tokens!.idToken) }
        }
    }

    @Test func aRotatedKeyStillVerifiesWhatItSigned() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let before = try client.signUp("ada@example.com").tokens!.idToken
            let _: ProjectRotateSigningKeyResponse = try client.client.call(
                "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest())
            let after = try client.signIn("ada@example.com").tokens!.idToken
            for token in [before, after] { _ = try Self.verify(client, token) }
            let keys: TokensListKeysResponse = try client.client.call(
                "postern.v1.Tokens/ListKeys", TokensListKeysRequest())
            #expect(String(decoding: keys.jwksJSON, as: UTF8.self).components(of: "\"kid\"") == 2)
        }
    }
}

extension String {
    /// How often `part` occurs.
    fileprivate func components(of part: String) -> Int {
        var count = 0
        var rest = self[...]
        while let range = rest.firstRange(of: part) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
