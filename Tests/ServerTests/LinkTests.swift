import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// Linking to a signed-in user, unlinking, and proving oneself again.
@Suite struct LinkTests {
    // MARK: Linking

    @Test func anAnonymousUserKeepsItsUidWhenItLinks() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let anonymous = try client.signUp()
            // The login may be long ago: an anonymous user has no way to log in again.
            server.clock.advance(by: .seconds(3_000))
            let linked = try client.signIn(.google(), linkingTo: anonymous.tokens!.idToken)
            #expect(linked.user?.uid == anonymous.user?.uid && !linked.isNewUser)
            let user = try #require(linked.user)
            #expect(user.email == "ada@gmail.com" && user.emailVerified && user.displayName == "Ada at Google")
            #expect(try client.signIn(.google()).user?.uid == anonymous.user?.uid)
        }
    }

    /// Linking makes no user, so the sign-up toggle does not affect it.
    @Test func anAnonymousUserMayTakeAPassword() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_anonymous_user", "client.permissions.disabled_user_signup"]) {
                $0.enableAnonymousUser = true
            }
            let anonymous = try client.signUp()
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let linked = try client.signUp("ada@example.com", linkingTo: anonymous.tokens!.idToken).user
            #expect(linked?.uid == anonymous.user?.uid && linked?.providers.map(\.providerID) == ["password"])
            #expect(try client.signIn("ada@example.com").user?.uid == anonymous.user?.uid)
        }
    }

    @Test func aCustomTokensClaimsStayWithItsSession() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let minted: UsersCreateCustomTokenResponse = try client.client.call(
                "postern.v1.Users/CreateCustomToken",
                UsersCreateCustomTokenRequest(uid: "u1", claimsJSON: Array(#"{"plan":"gold"}"#.utf8)))
            let signedIn: AccountsSignInWithCustomTokenResponse = try client.client.call(
                "postern.v1.Accounts/SignInWithCustomToken",
                AccountsSignInWithCustomTokenRequest(token: minted.customToken))
            let linked = try client.signIn(.google(), linkingTo: signedIn.tokens!.idToken)
            let proved = try Self.reauthenticate(
                client, linked.tokens!.idToken, .idp(client.credential(.google())))
            for (tokens, provider) in [(linked.tokens!, "custom"), (proved.tokens!, "google.com")] {
                let verified: TokensVerifyIdTokenResponse = try client.client.call(
                    "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: tokens.idToken))
                let claims = String(decoding: verified.claimsJSON, as: UTF8.self)
                #expect(claims.contains(#""plan":"gold""#))
                #expect(claims.contains(#""sign_in_provider":"\#(provider)""#))
            }
        }
    }

    @Test func aForeignCredentialIsRefusedWithTheMeansToMerge() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let other = try client.signIn(.github(email: "other@example.com"))
            let user = try client.signUp("ada@example.com")
            let refused = failure {
                _ = try client.signIn(.github(email: "other@example.com"), linkingTo: user.tokens!.idToken)
            }
            #expect(refused.code == .alreadyExists && refused.reason == "CREDENTIAL_ALREADY_IN_USE")
            #expect(refused.metadata("detail") == "FEDERATED_USER_ID_ALREADY_LINKED")
            #expect(!"\(refused)".contains(other.user!.uid.string))
            let token = Secret([UInt8](try #require(refused.metadata("pending_token")).utf8))
            let merged: AccountsSignInWithIdpResponse = try client.client.call(
                "postern.v1.Accounts/SignInWithIdp",
                AccountsSignInWithIdpRequest(credential: IdpCredential(credential: .pendingToken(token))))
            #expect(merged.user?.uid == other.user?.uid)
        }
    }

    @Test func anEmailOfAnotherAccountIsNotLinked() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("other@example.com")
            let user = try client.signUp("ada@example.com")
            let idToken = user.tokens!.idToken
            let byProvider = failure { _ = try client.signIn(.google(email: "other@example.com"), linkingTo: idToken) }
            #expect(byProvider.reason == "CREDENTIAL_ALREADY_IN_USE")
            #expect(byProvider.metadata("detail") == "EMAIL_EXISTS")
            let federated = try client.signIn(.facebook(email: ""))
            let byPassword = failure {
                _ = try client.signUp("other@example.com", linkingTo: federated.tokens!.idToken)
            }
            #expect(byPassword.reason == "CREDENTIAL_ALREADY_IN_USE")
            #expect(byPassword.metadata("detail") == "EMAIL_EXISTS")
        }
    }

    @Test func whatIsLinkedAlreadyIsNotLinkedAgain() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signIn(.google())
            let idToken = user.tokens!.idToken
            for rawID in ["g-1", "g-2"] as [Text] {
                expectRefusal("PROVIDER_ALREADY_LINKED") { _ = try client.signIn(.google(rawID), linkingTo: idToken) }
            }
            _ = try client.signUp("ada@gmail.com", linkingTo: idToken)
            expectRefusal("PROVIDER_ALREADY_LINKED") { _ = try client.signUp("ada@gmail.com", linkingTo: idToken) }
        }
    }

    @Test func anotherEmailIsNotSmuggledInByLinkingAPassword() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signIn(.google())
            let refused = failure { _ = try client.signUp("else@example.com", linkingTo: user.tokens!.idToken) }
            #expect(refused.reason == "INVALID_EMAIL")
            #expect(try client.get(user.user!.uid).email == "ada@gmail.com")
        }
    }

    @Test func linkingAndUnlinkingNeedARecentLogin() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signIn(.google())
            let idToken = user.tokens!.idToken
            server.clock.advance(by: .seconds(301))
            let refusals = [
                failure { _ = try client.signIn(.apple(), linkingTo: idToken) },
                failure { _ = try client.signUp("ada@gmail.com", linkingTo: idToken) },
                failure { _ = try Self.unlink(client, "google.com", idToken) },
            ]
            #expect(refusals.map(\.reason) == Array(repeating: "CREDENTIAL_TOO_OLD_LOGIN_AGAIN", count: 3))
        }
    }

    // MARK: Unlinking

    static func unlink(
        _ client: IdentityClient, _ providerID: Text, _ idToken: Text, force: Bool = false
    ) throws -> AccountsUnlinkResponse {
        try client.client.call(
            "postern.v1.Accounts/Unlink",
            AccountsUnlinkRequest(idToken: idToken, providerID: providerID, force: force))
    }

    @Test func anUnlinkedProviderIsFreeForAnybody() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signIn(.google())
            let linked = try client.signIn(.facebook(email: ""), linkingTo: user.tokens!.idToken)
            let left = try Self.unlink(client, "facebook.com", linked.tokens!.idToken)
            #expect(left.user?.providers.map(\.providerID) == ["google.com"])
            let stranger = try client.signIn(.facebook(email: ""))
            #expect(stranger.isNewUser && stranger.user?.uid != user.user?.uid)
            expectRefusal("NO_SUCH_PROVIDER") { _ = try Self.unlink(client, "facebook.com", left.tokens!.idToken) }
        }
    }

    @Test func anUnlinkedPasswordSignsNobodyInAndKeepsTheEmail() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@example.com")
            let linked = try client.signIn(.facebook(email: ""), linkingTo: user.tokens!.idToken)
            let left = try Self.unlink(client, "password", linked.tokens!.idToken)
            #expect(left.user?.providers.map(\.providerID) == ["facebook.com"])
            #expect(left.user?.email == "ada@example.com")
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("ada@example.com") }
        }
    }

    @Test(arguments: [false, true])
    func theLastWayInGoesOnlyByForceWhereEndUsersMayDelete(_ deletionIsOff: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signIn(.google())
            try client.setTenant(["client.permissions.disabled_user_deletion"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserDeletion: deletionIsOff))
            }
            let idToken = user.tokens!.idToken
            expectRefusal("LAST_SIGN_IN_METHOD") { _ = try Self.unlink(client, "google.com", idToken) }
            let forced = failure { _ = try Self.unlink(client, "google.com", idToken, force: true) }
            #expect(forced.reason == (deletionIsOff ? "ADMIN_RESTRICTED_OPERATION" : ""))
            #expect(try client.get(user.user!.uid).providers.isEmpty == !deletionIsOff)
        }
    }

    @Test func aWayThatIsSwitchedOffIsNoWayIn() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@example.com")
            let linked = try client.signIn(.facebook(email: ""), linkingTo: user.tokens!.idToken)
            let idToken = linked.tokens!.idToken
            try client.setTenant(["allow_password_signup", "enable_email_link_signin"]) {
                ($0.allowPasswordSignup, $0.enableEmailLinkSignin) = (false, false)
            }
            expectRefusal("LAST_SIGN_IN_METHOD") { _ = try Self.unlink(client, "facebook.com", idToken) }
            // What nobody can sign in with may go.
            let left = try Self.unlink(client, "password", idToken)
            #expect(left.user?.providers.map(\.providerID) == ["facebook.com"])
        }
    }

    @Test func aProviderThatIsSwitchedOffIsNoWayIn() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@example.com")
            let linked = try client.signIn(.facebook(email: ""), linkingTo: user.tokens!.idToken)
            let idToken = linked.tokens!.idToken
            try await server.project.store.write { transaction in
                let key = TenantTextKey("", "facebook.com")
                var stored = try transaction.get(Tables.providers, key) ?? StoredProvider()
                stored.provider?.enabled = false
                try transaction.put(Tables.providers, key, stored)
            }
            expectRefusal("LAST_SIGN_IN_METHOD") { _ = try Self.unlink(client, "password", idToken) }
            _ = try Self.unlink(client, "password", idToken, force: true)
        }
    }

    // MARK: By an admin

    @Test func anAdminLinksAndUnlinksAnything() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            func link(_ uid: Text, _ provider: ProviderInfo?) -> String {
                failure {
                    let _: UsersLinkResponse = try client.client.call(
                        "postern.v1.Users/Link", UsersLinkRequest(uid: uid, provider: provider))
                }.reason
            }
            let saml = ProviderInfo(providerID: "oidc.corp", rawID: "7")
            #expect(link(uid, saml) == "")
            #expect(link(uid, saml) == "PROVIDER_ALREADY_LINKED")
            #expect(link(uid, nil) == "INVALID_PROVIDER")
            for id in ["password", "phone", "email"] as [Text] {
                #expect(link(uid, ProviderInfo(providerID: id, rawID: "x")) == "INVALID_PROVIDER")
            }
            #expect(link("nobody", saml) == "USER_NOT_FOUND")
            let other = try client.signUp("eve@example.com").user!.uid
            #expect(link(other, saml) == "FEDERATED_USER_ID_ALREADY_LINKED")
            let identity = FederatedIdentity(providerID: "oidc.corp", rawID: "7")
            #expect(try client.signIn(identity).user?.uid == uid)
            for providerID in ["oidc.corp", "password"] as [Text] {
                let _: UsersUnlinkResponse = try client.client.call(
                    "postern.v1.Users/Unlink", UsersUnlinkRequest(uid: uid, providerID: providerID))
            }
            #expect(try client.get(uid).providers.isEmpty)
            expectRefusal("NO_SUCH_PROVIDER") {
                let _: UsersUnlinkResponse = try client.client.call(
                    "postern.v1.Users/Unlink", UsersUnlinkRequest(uid: uid, providerID: "oidc.corp"))
            }
        }
    }
}
