import Base
import Crypto
import Identity
import JSON
import Messages
import TestSupport
import Testing

/// Those who manage users set custom claims. These must never replace claims that services trust the server for.
@Suite struct CustomClaimAttackTests {
    /// Claims that only the server makes. Firebase lets users have them, so they may be set, but they are ignored.
    private static let ignored: [Text] = [
        "email", "email_verified", "phone_number", "provider_id", "synthetic", "user_id",
    ]
    private static let claims = JSONValue.object(
        ignored.map { JSONValue.Member($0, "forged") } + [JSONValue.Member("role", "editor")])

    private static func payload(_ client: IdentityClient, _ idToken: Text) throws -> JSONValue {
        let answer: TokensVerifyIdTokenResponse = try client.client.call(
            "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken))
        return try JSONValue(parsing: answer.claimsJSON)
    }

    private static func checkToken(_ client: IdentityClient, _ tokens: TokenPair, uid: Text, email: Text?) throws {
        let payload = try payload(client, tokens.idToken)
        #expect(payload["role"] == "editor" && payload["user_id"]?.text == uid)
        #expect(payload["email"]?.text == email)
        #expect(payload["email_verified"] == (email == nil ? nil : .bool(false)))
        for name in ["phone_number", "synthetic"] as [Text] { #expect(payload[name] == nil, "\(name)") }
        #expect(payload["provider_id"] == nil || payload["provider_id"] == "anonymous")
    }

    @Test(arguments: [nil, "ada@example.com"] as [Text?])
    func `A user's claims never stand in for the server's`(_ email: Text?) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let made = try client.signUp(email ?? .empty)
            let uid = made.user!.uid
            let answer: UsersSetCustomClaimsResponse = try client.client.call(
                "postern.v1.Users/SetCustomClaims",
                UsersSetCustomClaimsRequest(uid: uid, customClaimsJSON: Self.claims.serialized()))
            #expect(answer.ignoredClaims == Self.ignored)
            #expect(try JSONValue(parsing: client.get(uid).customClaimsJSON) == Self.claims)
            let tokens = try client.refresh(made.tokens!.refreshToken).tokens!
            try Self.checkToken(client, tokens, uid: uid, email: email)
        }
    }

    @Test func `A custom token's claims never do either`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let minted: UsersCreateCustomTokenResponse = try client.client.call(
                "postern.v1.Users/CreateCustomToken",
                UsersCreateCustomTokenRequest(uid: "ada", claimsJSON: Self.claims.serialized()))
            #expect(minted.ignoredClaims == Self.ignored)
            let signedIn: AccountsSignInWithCustomTokenResponse = try client.client.call(
                "postern.v1.Accounts/SignInWithCustomToken",
                AccountsSignInWithCustomTokenRequest(token: minted.customToken))
            try Self.checkToken(client, signedIn.tokens!, uid: "ada", email: nil)
        }
    }

    /// Firebase accepts such claims, so users who come from there may have them.
    @Test func `Users come in with them`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let claims = Self.claims.serialized()
            let users = (0..<3).map { ImportUser(uid: Text("u\($0)"), customClaimsJSON: claims) }
            let forbidden = ImportUser(uid: "no", customClaimsJSON: [UInt8](#"{"sid":"x"}"#.utf8))
            let answer = try ImportTests.importing(client.client, users + [forbidden])
            #expect(answer.createdCount == 3 && answer.ignoredClaims == Self.ignored)
            #expect(answer.rejections.map(\.reason) == ["FORBIDDEN_CLAIM"])
            let signedIn = try client.signIn(customTokenFor: "u0")
            try Self.checkToken(client, signedIn.tokens!, uid: "u0", email: nil)
        }
    }
}
