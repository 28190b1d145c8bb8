import Base
import Crypto
import Identity
import JSON
import Messages
import Reactor
import Service
import TestSupport
import Testing

/// The largest accounts: their tokens are never longer than what is accepted.
@Suite struct LongTokenTests {
    private static let tokenMax = Limits().tokenMax
    private static let secret = Secret([UInt8](repeating: 7, count: 32))

    private static func text(_ byte: String, _ count: Int) -> Text { Text(String(repeating: byte, count: count)) }

    /// A JSON object of exactly `count` bytes with one member.
    private static func claims(_ name: String, _ count: Int = 1_000) -> String {
        let frame = "{\"\(name)\":\"\"}".utf8.count
        return "{\"\(name)\":\"\(String(repeating: "c", count: count - frame))\"}"
    }

    /// The largest user that can be imported.
    private static func largest(uid: Text, providers: Int = 20) -> ImportUser {
        ImportUser(
            uid: uid, email: Text("\(text("e", 60))@\(text("x", 63)).\(text("y", 62)).\(text("z", 62)).com"),
            emailVerified: true,
            displayName: text("\"", 256), photoURL: Text("https://x.example/\(text("p", 2_030))"),
            phoneNumber: "+491512345678901", customClaimsJSON: [UInt8](claims("user").utf8),
            providers: (0..<providers).map { number in
                ProviderInfo(
                    providerID: Text("\(number).\(text("i", 120))"), rawID: Text("\(number).\(text("r", 250))"))
            })
    }

    /// A server that signs with its longest signatures, and has a hook that gives every session claims.
    private static func run(_ body: (IdentityClient) throws -> Void) async throws {
        let answer = #"{"allow":true,"session_claims":\#(claims("hook"))}"#
        let hook = FakeHTTPServer { _ in
            .response(HTTPResponse(contentType: "application/json", body: [UInt8](answer.utf8)))
        }
        defer { hook.close() }
        try await withServer(configure: { $0.project.signingAlgorithm = .rs256 }) { server in
            let client = try IdentityClient(server)
            let config = HookConfig(
                beforeSignIn: Hook(webhook: WebhookConfig(url: Text("\(hook.url)/hook"), signingSecret: secret)),
                allowPrivateAddresses: true)
            let _: HookConfigsUpdateResponse = try client.client.call(
                "postern.v1.HookConfigs/Update",
                HookConfigsUpdateRequest(
                    config: config,
                    updateMask: ProtobufFieldMask(paths: ["before_sign_in", "allow_private_addresses"])))
            try body(client)
        }
    }

    private static func signIn(_ client: IdentityClient, _ uid: Text) throws -> AccountsSignInWithCustomTokenResponse {
        let minted: UsersCreateCustomTokenResponse = try client.client.call(
            "postern.v1.Users/CreateCustomToken",
            UsersCreateCustomTokenRequest(uid: uid, claimsJSON: [UInt8](claims("token").utf8)))
        return try client.client.call(
            "postern.v1.Accounts/SignInWithCustomToken",
            AccountsSignInWithCustomTokenRequest(token: minted.customToken))
    }

    private static func verified(_ client: IdentityClient, _ idToken: Text) throws -> JSONValue {
        let answer: TokensVerifyIdTokenResponse = try client.client.call(
            "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken))
        return try JSONValue(parsing: answer.claimsJSON)
    }

    @Test(arguments: ["u", "\"", "\u{1}"])
    func `The largest account's tokens are accepted, with all claims that anybody set`(letter: String) async throws {
        try await Self.run { client in
            let uid = Self.text(letter, 128)
            let imported = try ImportTests.importing(client.client, [Self.largest(uid: uid)])
            try #require(imported.createdCount == 1, "\(imported.rejections)")
            let tokens = try #require(try Self.signIn(client, uid).tokens)
            #expect(tokens.idToken.byteCount <= Self.tokenMax)
            let claims = try Self.verified(client, tokens.idToken)
            for name in ["user", "token", "hook"] as [Text] { #expect(claims[name]?.string != nil) }
            #expect(claims["sub"]?.string == uid.string && claims["phone_number"]?.string == "+491512345678901")
            #expect(claims["picture"] == nil)
            #expect(try client.lookup(tokens.idToken).uid == uid)
            let refreshed = try #require(try client.refresh(tokens.refreshToken).tokens)
            #expect(try Self.verified(client, refreshed.idToken)["user"]?.string != nil)
            let cookie: TokensCreateSessionCookieResponse = try client.client.call(
                "postern.v1.Tokens/CreateSessionCookie",
                TokensCreateSessionCookieRequest(idToken: refreshed.idToken, validSeconds: 86_400))
            #expect(cookie.sessionCookie.byteCount <= Self.tokenMax)
            let _: TokensVerifySessionCookieResponse = try client.client.call(
                "postern.v1.Tokens/VerifySessionCookie",
                TokensVerifySessionCookieRequest(sessionCookie: cookie.sessionCookie))
        }
    }

    /// The claims of twenty providers fit only partly; those of the others are all there.
    @Test func `A token leaves out no more than it has to`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            var user = Self.largest(uid: "long")
            user.customClaimsJSON = []
            let imported = try ImportTests.importing(client.client, [user])
            try #require(imported.createdCount == 1, "\(imported.rejections)")
            let token = try #require(try client.signIn(customTokenFor: "long").tokens).idToken
            let claims = try Self.verified(client, token)
            #expect(claims["picture"] == nil && claims["name"]?.string == user.displayName.string)
            let identities = claims["firebase"]?["identities"]?.object ?? []
            #expect(identities.first?.name == "email" && (5..<20).contains(identities.count))
            #expect(identities.dropFirst().map(\.name) == user.providers.prefix(identities.count - 1).map(\.providerID))
            #expect((7_600...Self.tokenMax).contains(token.byteCount))
        }
    }

    /// JSON that is longer in a token than it was written counts by its length in the token.
    @Test(arguments: [
        "[" + String(repeating: "1e15,", count: 100) + "1]", #""\#(String(repeating: #"\b"#, count: 400))""#,
    ])
    func `Claims are bounded as a token has them`(value: String) async throws {
        #expect(value.utf8.count < 900)
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let uid = try client.find("ada@example.com").uid
            expectRefusal("CLAIMS_TOO_LARGE") {
                let _: UsersSetCustomClaimsResponse = try client.client.call(
                    "postern.v1.Users/SetCustomClaims",
                    UsersSetCustomClaimsRequest(uid: uid, customClaimsJSON: [UInt8](#"{"a":\#(value)}"#.utf8)))
            }
        }
    }
}
