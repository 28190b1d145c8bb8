import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// What docs/linking.md promises beyond who joins whom: which defaults are trusted, and what a refusal leaves alone.
@Suite struct LinkingDecisionsTests {
    private static let consumers = "9188040d-6c67-4c5b-b112-36a304b66dad"

    /// Claims as the providers write them, under a configuration that an admin makes with a client id and nothing else.
    @Test(arguments: [
        ("google.com", "ann@gmail.com", #","email_verified":true"#, true),
        ("google.com", "ann@gmail.com", #","email_verified":"true""#, true),
        ("google.com", "ann@gmail.com", #","email_verified":false"#, false), ("google.com", "ann@gmail.com", "", false),
        ("google.com", "ann@example.com", #","email_verified":true"#, false),
        ("google.com", "ann@gmail.com.example.com", #","email_verified":true"#, false),
        ("yahoo.com", "ann@yahoo.com", #","email_verified":true"#, true), ("yahoo.com", "ann@yahoo.com", "", false),
        ("yahoo.com", "ann@gmail.com", #","email_verified":true"#, false),
        ("microsoft.com", "ann@outlook.com", #","tid":"\#(consumers)""#, true),
        ("microsoft.com", "ann@hotmail.com", #","tid":"\#(consumers)""#, true),
        ("microsoft.com", "ann@outlook.com", #","tid":"72f988bf-86f1-41af-91ab-2d7cd011db47""#, false),
        ("microsoft.com", "ann@outlook.com", #","email_verified":true"#, false),
        ("apple.com", "ann@example.com", #","email_verified":"true""#, true),
        ("apple.com", "ann@example.com", #","email_verified":"false""#, false),
        ("facebook.com", "ann@example.com", #","email_verified":true"#, false),
        ("github.com", "ann@example.com", #","email_verified":true"#, false),
        ("twitter.com", "ann@example.com", #","email_verified":true"#, false),
        ("linkedin.com", "ann@example.com", #","email_verified":true"#, false),
        ("oidc.corp", "ann@example.com", #","email_verified":true"#, false),
    ])
    func `Trust is by default what the table of providers says`(
        _ providerID: Text, _ email: String, _ claims: String, _ isTrusted: Bool
    ) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            var provider = Provider(providerID: providerID, clientID: "client-1")
            if providerID == "oidc.corp" { provider.issuer = "https://corp.example" }
            let _: ProvidersCreateResponse = try client.client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider))
            _ = try client.signUp(Text(email))
            let said: UsersExplainLinkResponse = try client.client.call(
                "postern.v1.Users/ExplainLink",
                UsersExplainLinkRequest(
                    providerID: providerID, claimsJSON: Array(#"{"sub":"1","email":"\#(email)"\#(claims)}"#.utf8)))
            #expect(said.emailTrusted == isTrusted)
            #expect(said.outcome == (isTrusted ? .takeOver : .needsLinking))
        }
    }

    @Test func `A refusal for linking changes nothing of the account`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp("ada@gmail.com").user).uid
            let before = try client.get(uid)
            server.clock.advance(by: .seconds(60))
            for identity in [FederatedIdentity.facebook(), .github()] {
                expectRefusal("ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL") { _ = try client.signIn(identity) }
            }
            #expect(try client.get(uid) == before)
        }
    }

    @Test func `A linked provider fills empty profile fields and leaves full ones`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signIn(.apple()).user).uid
            try client.update(uid, ["display_name"]) { $0.displayName = "Countess" }
            let linked = try #require(try client.signIn(.google()).user)
            #expect(linked.uid == uid && linked.displayName == "Countess")
            #expect(linked.photoURL == "https://g.example/ada")
        }
    }

    @Test func `Another identity of the same provider takes the place of the first, which is then free`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signIn(.google("g-1")).user).uid
            let second = try client.signIn(.google("g-2"))
            #expect(second.user?.uid == uid && second.user?.providers.map(\.rawID) == ["g-2"])
            let first = try client.signIn(.google("g-1", email: "elsewhere@gmail.com"))
            #expect(first.isNewUser && first.user?.uid != uid)
            #expect(try client.signIn(.google("g-2")).user?.uid == uid)
        }
    }

    @Test func `A mailbox of another account is not linked by its link`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let other = try #require(try client.signUp("other@example.com").user).uid
            let user = try client.signIn(.facebook(email: ""))
            let before = try client.get(other)
            try client.sendOob(.emailSignin, email: "other@example.com")
            let code = try #require(try client.mails().first).code
            let refused = failure {
                _ = try client.signIn("other@example.com", link: code, linkingTo: user.tokens?.idToken ?? .empty)
            }
            #expect(refused.reason == "CREDENTIAL_ALREADY_IN_USE" && refused.metadata("detail") == "EMAIL_EXISTS")
            #expect(!"\(refused)".contains(other.string))
            #expect(try client.get(other) == before)
        }
    }

    @Test func `Neither toggle stops linking and unlinking`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@gmail.com")
            try client.setTenant([
                "client.permissions.disabled_user_signup", "client.permissions.disabled_user_deletion",
            ]) {
                $0.client = ClientConfig(
                    permissions: ClientPermissions(disabledUserSignup: true, disabledUserDeletion: true))
            }
            let linked = try client.signIn(.github(), linkingTo: user.tokens?.idToken ?? .empty)
            let left: AccountsUnlinkResponse = try client.client.call(
                "postern.v1.Accounts/Unlink",
                AccountsUnlinkRequest(idToken: linked.tokens?.idToken ?? .empty, providerID: "github.com"))
            #expect(left.user?.providers.map(\.providerID) == ["password"])
        }
    }
}
