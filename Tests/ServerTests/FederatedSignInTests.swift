import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// Signing in with providers, account by account: which accounts join, which sign-ins are refused, what is left behind.
@Suite struct FederatedSignInTests {
    @Test func aNewIdentityMakesAnAccountWithWhatTheProviderTells() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let answer = try client.signIn(.google())
            let user = try #require(answer.user)
            #expect(answer.isNewUser)
            #expect(user.email == "ada@gmail.com" && user.emailVerified)
            #expect(user.displayName == "Ada at Google" && user.photoURL == "https://g.example/ada")
            #expect(user.providers.map(\.providerID) == ["google.com"])
            #expect(answer.provider?.rawID == "g-1")
            let again = try client.signIn(.google())
            #expect(!again.isNewUser && again.user?.uid == user.uid)
        }
    }

    @Test func anUntrustedIdentityMakesAnAccountWithAnUnverifiedEmail() async throws {
        try await withServer { server in
            let user = try #require(try IdentityClient(server).signIn(.github()).user)
            #expect(user.email == "ada@gmail.com" && !user.emailVerified)
        }
    }

    // MARK: The same email at a second provider

    @Test(arguments: [FederatedIdentity.facebook(), .google()])
    func anUntrustedSecondProviderIsSentToTheFirst(_ first: FederatedIdentity) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signIn(first).user).uid
            let refused = failure { _ = try client.signIn(.github()) }
            #expect(refused.code == .failedPrecondition)
            #expect(refused.reason == "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL")
            #expect(refused.metadata("email") == "ada@gmail.com")
            #expect(refused.metadata("sign_in_methods") == nil)
            #expect(try client.get(uid).providers.map(\.providerID) == [first.providerID])
        }
    }

    @Test func aTrustedProviderReplacesAnUntrustedOneWhichIsThenSentAway() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let before = try client.signIn(.facebook())
            let after = try client.signIn(.google())
            #expect(after.user?.uid == before.user?.uid)
            #expect(after.user?.providers.map(\.providerID) == ["google.com"])
            #expect(after.user?.displayName == "Ada at Google")
            #expect(after.user?.emailVerified == true)
            expectRefusal("ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL") { _ = try client.signIn(.facebook()) }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(before.tokens!.idToken) }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(before.tokens!.refreshToken) }
        }
    }

    @Test func twoTrustedProvidersAreLinkedWithoutAnError() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let first = try client.signIn(.google())
            let second = try client.signIn(.apple())
            #expect(second.user?.uid == first.user?.uid && !second.isNewUser)
            #expect(second.user?.providers.map(\.providerID) == ["google.com", "apple.com"])
            #expect(second.user?.displayName == "Ada at Google")
            #expect(try client.lookup(first.tokens!.idToken).uid == first.user?.uid)
        }
    }

    @Test func theWaysInAreNamedOnlyWithoutEnumerationProtection() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@gmail.com")
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let refused = failure { _ = try client.signIn(.github()) }
            #expect(refused.metadata("sign_in_methods") == "password")
        }
    }

    @Test func `A user of sign-in links is not sent to a password`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy", "enable_email_link_signin"]) {
                $0.enableEmailPrivacy = false
                $0.enableEmailLinkSignin = true
            }
            try client.sendOob(.emailSignin, email: "ada@gmail.com")
            _ = try client.signIn("ada@gmail.com", link: try #require(try client.mails().first).code)
            let refused = failure { _ = try client.signIn(.github()) }
            #expect(refused.metadata("sign_in_methods") == "emailLink")
        }
    }

    @Test func thePendingTokenLinksAfterSigningInTheKnownWay() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@gmail.com")
            let refused = failure { _ = try client.signIn(.github()) }
            let token = Secret([UInt8](try #require(refused.metadata("pending_token")).utf8))
            let known = try client.signIn("ada@gmail.com")
            let linked: AccountsSignInWithIdpResponse = try client.client.call(
                "postern.v1.Accounts/SignInWithIdp",
                AccountsSignInWithIdpRequest(
                    credential: IdpCredential(credential: .pendingToken(token)), idToken: known.tokens!.idToken))
            #expect(Set(linked.user?.providers.map(\.providerID) ?? []) == ["password", "github.com"])
            #expect(try client.signIn(.github()).user?.uid == known.user?.uid)
        }
    }

    @Test func aPendingTokenIsGoodForTenMinutesInItsTenantAndUnaltered() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            var token = client.pendingToken(.google()).bytes
            let foreign = client.pendingToken(.google(), tenantID: "acme").bytes
            func reason(_ token: [UInt8]) -> String {
                failure {
                    let _: AccountsSignInWithIdpResponse = try client.client.call(
                        "postern.v1.Accounts/SignInWithIdp",
                        AccountsSignInWithIdpRequest(
                            credential: IdpCredential(credential: .pendingToken(Secret(token)))))
                }.reason
            }
            #expect(reason(foreign) == "INVALID_PENDING_TOKEN")
            server.clock.advance(by: .seconds(600))
            #expect(reason(token) == "INVALID_PENDING_TOKEN")
            token = client.pendingToken(.google()).bytes
            for index in stride(from: 0, to: token.count - 1, by: 7) {
                var altered = token
                altered[index] = altered[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
                #expect(reason(altered) == "INVALID_PENDING_TOKEN")
            }
            #expect(reason(token) == "")
        }
    }

    // MARK: Toggles and disabled accounts

    /// An admin who disables a provider, trusts it less or deletes it also means what it proved a moment ago.
    @Test func aPendingTokenIsNoGoodOnceItsProviderChanged() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let token = client.pendingToken(.github())
            func use(_ token: Text) -> Failure {
                failure {
                    let _: AccountsSignInWithIdpResponse = try client.client.call(
                        "postern.v1.Accounts/SignInWithIdp",
                        AccountsSignInWithIdpRequest(
                            credential: IdpCredential(credential: .pendingToken(Secret(token.bytes)))))
                }
            }
            func update(_ path: Text, _ change: (inout Provider) -> Void) throws {
                var provider = Provider()
                provider.providerID = "github.com"
                change(&provider)
                let _: ProvidersUpdateResponse = try client.client.call(
                    "postern.v1.Providers/Update",
                    ProvidersUpdateRequest(provider: provider, updateMask: ProtobufFieldMask(paths: [path])))
            }
            try update("enabled") { $0.enabled = false }
            #expect(use(token).reason == "OPERATION_NOT_ALLOWED")
            try update("enabled") { $0.enabled = true }
            #expect(use(token).reason == "INVALID_PENDING_TOKEN")
            let second = client.pendingToken(.github())
            try update("trust") { $0.trust = ProviderTrust(level: .never) }
            #expect(use(second).reason == "INVALID_PENDING_TOKEN")
            let third = client.pendingToken(.github())
            let _: ProvidersDeleteResponse = try client.client.call(
                "postern.v1.Providers/Delete", ProvidersDeleteRequest(providerID: "github.com"))
            #expect(use(third).reason == "OPERATION_NOT_ALLOWED")
            server.clock.advance(by: .microseconds(1))
            let made = client.pendingToken(.github())
            #expect(use(third).reason == "INVALID_PENDING_TOKEN")
            #expect(use(made).reason == "")
        }
    }

    @Test func aPendingTokenIsNotMadeYoungerByUsingIt() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let google = FederatedIdentity.google("ada", email: "ada@gmail.com")
            _ = try client.signIn(google)
            let anonymous = try client.signUp().tokens!.idToken
            func use(_ token: Text, linking: Bool) -> Failure {
                failure {
                    let _: AccountsSignInWithIdpResponse = try client.client.call(
                        "postern.v1.Accounts/SignInWithIdp",
                        AccountsSignInWithIdpRequest(
                            credential: IdpCredential(credential: .pendingToken(Secret(token.bytes))),
                            idToken: linking ? anonymous : .empty))
                }
            }
            for (identity, linking) in [(google, true), (.facebook("ada", email: "ada@gmail.com"), false)] {
                var token = client.pendingToken(identity)
                for _ in 0..<3 {
                    server.clock.advance(by: .minutes(3))
                    token = Text(try #require(use(token, linking: linking).metadata("pending_token")))
                }
                server.clock.advance(by: .minutes(1))
                #expect(use(token, linking: linking).reason == "INVALID_PENDING_TOKEN")
            }
        }
    }

    @Test func theSignUpToggleRefusesOnlyTheFirstSignIn() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let known = try client.signIn(.google())
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let refused = failure { _ = try client.signIn(.google("g-2", email: "new@gmail.com")) }
            #expect(refused.reason == "ADMIN_RESTRICTED_OPERATION")
            #expect(refused.metadata("operation") == "postern.v1.Accounts/SignInWithIdp")
            #expect(try client.signIn(.google()).user?.uid == known.user?.uid)
            // Linking makes no user, and neither does a trusted provider that joins an account.
            #expect(try client.signIn(.apple()).user?.uid == known.user?.uid)
            let denials: TenantsListDenialsResponse = try client.client.call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest())
            #expect(denials.denials.map(\.decisionID.string) == [refused.metadata("decision_id") ?? ""])
        }
    }

    @Test(arguments: [FederatedIdentity.google(), .apple()])
    func aDisabledAccountIsNeitherEnteredNorChanged(_ identity: FederatedIdentity) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signIn(.google()).user).uid
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            let before = try client.get(uid)
            expectRefusal("USER_DISABLED") { _ = try client.signIn(identity) }
            #expect(try client.get(uid) == before)
        }
    }

    @Test func aDisabledUnverifiedAccountIsNotTakenOver() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp("ada@gmail.com").user).uid
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            expectRefusal("USER_DISABLED") { _ = try client.signIn(.google()) }
            #expect(try client.get(uid).providers.map(\.providerID) == ["password"])
        }
    }

    @Test func fiftyFirstSignInsWithOneIdentityMakeOneAccount() async throws {
        try await withServer { server in
            let uids = await withTaskGroup(of: Text?.self) { group in
                for _ in 0..<50 {
                    group.addTask { try? IdentityClient(server).signIn(.google()).user?.uid }
                }
                return await group.reduce(into: Set<Text?>()) { $0.insert($1) }
            }
            #expect(uids.count == 1)
            #expect(uids.first != .some(nil))
        }
    }
}
