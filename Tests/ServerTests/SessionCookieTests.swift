import Base
import Identity
import JSON
import Messages
import TestSupport
import Testing

@Suite struct SessionCookieTests {
    private static func create(
        _ client: IdentityClient, _ idToken: Text, seconds: Int64 = 0, tenantID: Text = .empty
    ) throws -> TokensCreateSessionCookieResponse {
        try client.client.call(
            "postern.v1.Tokens/CreateSessionCookie",
            TokensCreateSessionCookieRequest(tenantID: tenantID, idToken: idToken, validSeconds: seconds))
    }

    private static func verify(
        _ client: IdentityClient, _ cookie: Text, tenantID: Text = .empty, anyTenant: Bool = false
    ) throws -> TokensVerifySessionCookieResponse {
        try client.client.call(
            "postern.v1.Tokens/VerifySessionCookie",
            TokensVerifySessionCookieRequest(tenantID: tenantID, sessionCookie: cookie, anyTenant: anyTenant))
    }

    @Test func aCookieSaysWhatItsIDTokenSaysForTwoWeeks() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let cookie = try Self.create(client, made.tokens!.idToken)
            let now = server.clock.clock.now()
            #expect(cookie.expiresAtMicros == (now + .hours(24 * 14)).microseconds)
            server.clock.advance(by: .hours(24 * 13))
            let verified = try Self.verify(client, cookie.sessionCookie)
            #expect(verified.uid == made.user!.uid)
            let claims = JWTClaims(cookie.sessionCookie)
            let idClaims = JWTClaims(made.tokens!.idToken)
            #expect(claims.text("iss") == "https://issuer.test/test/session-cookie")
            for name in ["sub", "aud", "email", "sid"] as [Text] { #expect(claims.text(name) == idClaims.text(name)) }
            for name in ["auth_time", "gen"] as [Text] { #expect(claims.integer(name) == idClaims.integer(name)) }
            server.clock.advance(by: .hours(25))
            expectRefusal("TOKEN_EXPIRED") { _ = try Self.verify(client, cookie.sessionCookie) }
        }
    }

    @Test func aCookieEndsWithItsSessionAtTheLatest() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["session_absolute_seconds"]) { $0.sessionAbsoluteSeconds = 86_400 }
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            let end = server.clock.clock.now() + .hours(24)
            server.clock.advance(by: .minutes(4))
            #expect(try Self.create(client, idToken).expiresAtMicros == end.microseconds)
            let short = try Self.create(client, idToken, seconds: 3_600)
            #expect(short.expiresAtMicros == (server.clock.clock.now() + .hours(1)).microseconds)
        }
    }

    @Test func neitherKindOfTokenIsTakenForTheOther() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            let cookie = try Self.create(client, idToken).sessionCookie
            expectRefusal("INVALID_SESSION_COOKIE") { _ = try Self.verify(client, idToken) }
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(cookie) }
            expectRefusal("INVALID_ID_TOKEN") {
                let _: TokensVerifyIdTokenResponse = try client.client.call(
                    "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: cookie))
            }
            expectRefusal("INVALID_ID_TOKEN") { _ = try Self.create(client, cookie) }
        }
    }

    @Test func itsKeysAreItsOwn() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func keyIDs(_ use: TokenUse) throws -> Set<String> {
                let listed: TokensListKeysResponse = try client.client.call(
                    "postern.v1.Tokens/ListKeys", TokensListKeysRequest(tokenUse: use))
                guard case .array(let keys) = try JSONValue(parsing: listed.jwksJSON)["keys"] else { return [] }
                return Set(keys.compactMap { $0["kid"]?.text?.string })
            }
            #expect(try keyIDs(.idToken).count == 1 && keyIDs(.sessionCookie).count == 1)
            #expect(try keyIDs(.idToken).isDisjoint(with: keyIDs(.sessionCookie)))
            #expect(try keyIDs(.unspecified) == keyIDs(.idToken))
            let idKeys = try keyIDs(.idToken)
            let rotated: ProjectRotateSigningKeyResponse = try client.client.call(
                "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(tokenUse: .sessionCookie))
            #expect(rotated.key?.tokenUse == .sessionCookie)
            #expect(try keyIDs(.idToken) == idKeys && keyIDs(.sessionCookie).count == 2)
            // A cookie of the old key is good for its two weeks.
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            let cookie = try Self.create(client, idToken).sessionCookie
            let _: ProjectRotateSigningKeyResponse = try client.client.call(
                "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(tokenUse: .sessionCookie))
            server.clock.advance(by: .hours(24 * 13))
            await server.project.sweep()
            _ = try Self.verify(client, cookie)
        }
    }

    enum Ending: CaseIterable { case signOut, revokeTokens, disabled, deleted }

    @Test(arguments: Ending.allCases)
    func aCookieEndsWithItsSession(_ ending: Ending) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let uid = made.user!.uid
            let cookie = try Self.create(client, made.tokens!.idToken).sessionCookie
            server.clock.advance(by: .seconds(1))
            let reason: String
            switch ending {
            case .signOut:
                let _: SessionsSignOutResponse = try client.client.call(
                    "postern.v1.Sessions/SignOut", SessionsSignOutRequest(idToken: made.tokens!.idToken))
                reason = "TOKEN_EXPIRED"
            case .revokeTokens:
                let _: UsersRevokeTokensResponse = try client.client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
                reason = "TOKEN_EXPIRED"
            case .disabled:
                try client.update(uid, ["disabled"]) { $0.disabled = true }
                reason = "USER_DISABLED"
            case .deleted:
                let _: UsersDeleteResponse = try client.client.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
                reason = "USER_NOT_FOUND"
            }
            expectRefusal(reason) { _ = try Self.verify(client, cookie) }
        }
    }

    @Test func aCookieNeedsARecentLoginAndATimeWithinBounds() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            let short = try Self.create(client, idToken, seconds: 300)
            #expect(short.expiresAtMicros == (server.clock.clock.now() + .minutes(5)).microseconds)
            for seconds in [1, 299, 1_209_601, -1, .max] as [Int64] {
                expectRefusal("INVALID_DURATION") { _ = try Self.create(client, idToken, seconds: seconds) }
            }
            expectRefusal("MISSING_ID_TOKEN") { _ = try Self.create(client, .empty) }
            expectRefusal("MISSING_SESSION_COOKIE") { _ = try Self.verify(client, .empty) }
            server.clock.advance(by: .minutes(6))
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { _ = try Self.create(client, idToken) }
        }
    }

    @Test func tenantsHaveCookiesToo() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let made: AccountsSignUpResponse = try client.client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(tenantID: "acme", email: "ada@example.com", password: Secret("correct horse")))
            let cookie = try Self.create(client, made.tokens!.idToken, tenantID: "acme").sessionCookie
            #expect(try Self.verify(client, cookie, tenantID: "acme").tenantID == "acme")
            #expect(try Self.verify(client, cookie, anyTenant: true).tenantID == "acme")
            expectRefusal("TENANT_ID_MISMATCH") { _ = try Self.verify(client, cookie) }
        }
    }
}

/// The payload of a JWT, unverified.
struct JWTClaims {
    private let value: JSONValue?

    init(_ token: Text) {
        let parts = token.bytes.split(separator: UInt8(ascii: "."))
        value = parts.count == 3 ? Base64.url.decode(parts[1]).flatMap { try? JSONValue(parsing: $0) } : nil
    }

    func text(_ name: Text) -> Text { value?[name]?.text ?? .empty }
    func integer(_ name: Text) -> Int64 { value?[name]?.integer ?? 0 }
}
