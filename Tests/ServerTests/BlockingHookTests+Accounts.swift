import Base
import Identity
import JSON
import Messages
import TestSupport
import Testing
import Wire

/// Accounts that a password reset makes, and sessions and requests that go on after a hook was asked.
extension BlockingHookTests {
    static let disabledByHook: Text = "disabled by hook"

    /// How many events of the user are of this kind, with this detail if one is given.
    static func eventCount(
        _ client: IdentityClient, _ uid: Text, _ kind: EventKind, _ detail: Text? = nil
    ) throws -> Int {
        let page: AuditListEventsResponse = try client.client.call(
            "postern.v1.Audit/ListEvents",
            AuditListEventsRequest(pageSize: 1_000, filter: EventFilter(uid: uid, kinds: [kind])))
        return page.events.count { detail == nil || $0.detail == detail }
    }

    // MARK: Password resets

    private static let mallory: Text = "mallory@evil.example"

    /// Ann moves her account to an address that nobody has proved. Its mailbox is Mallory's, who asks for a new
    /// password.
    static func mallorysCode(_ client: IdentityClient) throws -> (ann: Text, code: Secret) {
        try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
        let made = try EmailRecoveryTests.verifiedAccount(client, "ann@example.com")
        let uid = try client.lookup(made.idToken).uid
        _ = try EmailRecoveryTests.move(client, to: mallory, made.idToken)
        try client.sendOob(.passwordReset, email: mallory)
        return (uid, try EmailRecoveryTests.newestCode(client, .passwordReset))
    }

    @Test func aPasswordResetThatMakesAnAccountIsAskedAbout() async throws {
        try await Self.run { scene in
            let client = scene.identity
            let (ann, code) = try Self.mallorysCode(client)
            try scene.update(["before_create", "before_sign_in"])
            scene.script.set("before_create", #"{"allow":false}"#)
            expectRefusal("BLOCKED_BY_HOOK") { _ = try client.resetPassword(code, "another horse") }
            #expect(try scene.userCount() == 1)
            #expect(try client.get(ann).email == Self.mallory)
            // No session begins, so only one of the hooks is asked.
            let asked = scene.script.asked
            #expect(asked.map { $0["hook"]?.string } == ["before_create"])
            #expect(asked.first?["is_new_user"]?.bool == true)
            #expect(asked.first?["user"]?["email"]?.string == Self.mallory.string)
            #expect(asked.first?["user"]?["email_verified"]?.bool == true)
            // The refusal did not use the code up.
            scene.script.set(
                "before_create", #"{"allow":true,"display_name":"By hook","custom_claims":{"plan":"pro"}}"#)
            _ = try client.resetPassword(code, "another horse")
            let made = try client.find(Self.mallory)
            #expect(made.uid != ann && made.displayName == "By hook")
            #expect(try JSONValue(parsing: made.customClaimsJSON)["plan"]?.string == "pro")
            #expect(try scene.userCount() == 2 && client.get(ann).email == "ann@example.com")
        }
    }

    @Test func whomAHookDisablesAtAPasswordResetIsDisabledAndRefused() async throws {
        try await Self.run { scene in
            let code = try Self.mallorysCode(scene.identity).code
            try scene.update(["before_create"])
            scene.script.set("before_create", #"{"allow":true,"disabled":true}"#)
            expectRefusal("USER_DISABLED") { _ = try scene.identity.resetPassword(code, "another horse") }
            let made = try scene.identity.find(Self.mallory)
            #expect(try made.disabled && scene.userCount() == 2)
            #expect(try Self.eventCount(scene.identity, made.uid, .userUpdated, Self.disabledByHook) == 1)
        }
    }

    /// Nobody can sign in to such an account.
    @Test func anAnonymousUserWhomAHookDisablesExpires() async throws {
        try await Self.run { scene in
            let server = scene.identity.server
            try scene.identity.setTenant(["enable_anonymous_user", "anonymous_user_expiry_seconds"]) {
                $0.enableAnonymousUser = true
                $0.anonymousUserExpirySeconds = 30 * 86_400
            }
            try scene.update(["before_create"])
            scene.script.set("before_create", #"{"allow":true,"disabled":true}"#)
            expectRefusal("USER_DISABLED") { _ = try scene.identity.signUp() }
            #expect(try scene.userCount() == 1)
            for days in [0, 20, 11] as [Int64] {
                server.clock.advance(by: .days(days))
                await server.project.sweep()
            }
            #expect(try scene.userCount() == 0)
        }
    }

    @Test func aPasswordResetOfTheUsersOwnAccountAsksNoHook() async throws {
        try await Self.run { scene in
            _ = try EmailRecoveryTests.verifiedAccount(scene.identity, "ann@example.com")
            try scene.update(["before_create", "before_sign_in"])
            try scene.identity.sendOob(.passwordReset, email: "ann@example.com")
            let code = try EmailRecoveryTests.newestCode(scene.identity, .passwordReset)
            _ = try scene.identity.resetPassword(code, "another horse")
            #expect(scene.script.asked.isEmpty)
        }
    }

    // MARK: Session claims

    @Test func aHooksClaimsStayWhenACustomTokenProvesTheUserAgain() async throws {
        try await Self.run { scene in
            let client = scene.identity
            let uid = try #require(try client.signUp("ann@example.com").user?.uid)
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", #"{"allow":true,"session_claims":{"restricted":true,"step":1}}"#)
            var idToken = try #require(try client.signIn("ann@example.com").tokens).idToken
            // A custom token's claims, also none, replace those of the one before it, and win over the hook's.
            let cases: [(custom: String, step: Int64, hasPlan: Bool)] = [
                (#"{"step":2}"#, 2, false), (#"{"plan":"gold"}"#, 1, true), ("", 1, false), (#"{"step":3}"#, 3, false),
            ]
            for (custom, step, hasPlan) in cases {
                let minted: UsersCreateCustomTokenResponse = try client.client.call(
                    "postern.v1.Users/CreateCustomToken",
                    UsersCreateCustomTokenRequest(uid: uid, claimsJSON: [UInt8](custom.utf8)))
                let again = try LinkTests.reauthenticate(client, idToken, .customToken(minted.customToken))
                let tokens = try #require(again.tokens)
                let refreshed = try #require(try client.refresh(tokens.refreshToken).tokens)
                for token in [tokens.idToken, refreshed.idToken] {
                    let claims = try scene.claims(token)
                    #expect(claims["restricted"]?.bool == true, "\(custom)")
                    #expect(claims["step"]?.integer == step, "\(custom)")
                    #expect((claims["plan"]?.string == "gold") == hasPlan, "\(custom)")
                }
                idToken = refreshed.idToken
            }
        }
    }

    @Test func aHooksClaimsStayWhenASecondFactorFinishesTheSignIn() async throws {
        try await Self.run { scene in
            let client = scene.identity
            try client.setFactors(.enabled)
            let user = try client.appUser()
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", #"{"allow":true,"session_claims":{"restricted":true,"step":1}}"#)
            func expectClaims(_ tokens: TokenPair?, step: Int64) throws -> Text {
                let tokens = try #require(tokens)
                let refreshed = try #require(try client.refresh(tokens.refreshToken).tokens)
                for token in [tokens.idToken, refreshed.idToken] {
                    let claims = try scene.claims(token)
                    #expect(claims["restricted"]?.bool == true)
                    #expect(claims["step"]?.integer == step)
                    #expect(claims["firebase"]?["sign_in_second_factor"]?.string == "totp")
                }
                return refreshed.idToken
            }
            let done = try client.finish(try client.pending(user), user)
            let idToken = try expectClaims(done.tokens, step: 1)
            // A custom token proves the same user again in this session, and the factor as well.
            client.server.clock.advance(by: .seconds(60))
            let minted: UsersCreateCustomTokenResponse = try client.client.call(
                "postern.v1.Users/CreateCustomToken",
                UsersCreateCustomTokenRequest(uid: user.uid, claimsJSON: [UInt8](#"{"step":2}"#.utf8)))
            let pending = try client.pending {
                _ = try LinkTests.reauthenticate(client, idToken, .customToken(minted.customToken))
            }
            _ = try expectClaims(try client.finish(pending, user).tokens, step: 2)
            // Only a sign-in asks the hook, and asks it once.
            #expect(scene.script.asked.count == 1)
        }
    }

    /// Whoever has the user's mailbox or provider account has not shown the second factor. The account must not keep
    /// the identity for the day on which an admin enables it again.
    @Test func whomAHookDisablesBeforeTheSecondFactorIsOnlyDisabled() async throws {
        try await Self.run { scene in
            let client = scene.identity
            try client.setFactors(.enabled)
            let user = try client.appUser("ada@gmail.com")
            let before = try client.get(user.uid)
            let signInCount = try Self.eventCount(client, user.uid, .signedIn)
            client.server.clock.advance(by: .seconds(60))
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", #"{"allow":true,"disabled":true,"display_name":"By hook"}"#)
            expectRefusal("USER_DISABLED") { _ = try client.signIn(.google()) }
            let after = try client.get(user.uid)
            #expect(after.disabled && after.providers.map(\.providerID) == before.providers.map(\.providerID))
            #expect(after.displayName == before.displayName && after.photoURL == before.photoURL)
            #expect(after.lastSignInAtMicros == before.lastSignInAtMicros)
            #expect(try Self.eventCount(client, user.uid, .signedIn) == signInCount)
            #expect(try Self.eventCount(client, user.uid, .userUpdated, Self.disabledByHook) == 1)
            let refused = failure { _ = try client.refresh(user.tokens.refreshToken) }
            #expect(["USER_DISABLED", "TOKEN_EXPIRED"].contains(refused.reason))
            // Enabled again, the account asks for the factor that it had.
            try client.update(user.uid, ["disabled"]) { $0.disabled = false }
            scene.script.set("before_sign_in", #"{"allow":true}"#)
            let pending = try client.pending { _ = try client.signIn(.google()) }
            let done = try client.finish(pending, user)
            let providers = done.user?.providers.map(\.providerID) ?? []
            #expect(done.user?.uid == user.uid && providers.contains("google.com"))
        }
    }

    @Test func aHooksClaimsStayWhenEnrollingASecondFactorFinishesTheSignIn() async throws {
        try await Self.run { scene in
            let client = scene.identity
            try client.setFactors(.mandatory)
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", #"{"allow":true,"session_claims":{"restricted":true}}"#)
            let stopped = failure { _ = try client.signUp("ann@example.com") }
            let credential = Text(stopped.metadata("enrollment_credential") ?? "")
            try client.verifyEmail(credential)
            let user = try client.enrollApp("ann@example.com", credential)
            let refreshed = try #require(try client.refresh(user.tokens.refreshToken).tokens)
            for token in [user.tokens.idToken, refreshed.idToken] {
                #expect(try scene.claims(token)["restricted"]?.bool == true)
            }
            #expect(scene.script.asked.count == 1)
        }
    }

    // MARK: Repeats

    @Test func theRepeatOfALostSignUpOrSignInAsksNoHook() async throws {
        try await Self.run { scene in
            func key(_ text: Text) -> [OutgoingMetadata.Entry] {
                [OutgoingMetadata.Entry(key: "idempotency-key", value: text)]
            }
            func signUp(_ email: Text, key text: Text) throws -> AccountsSignUpResponse {
                try scene.identity.client.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(email: email, password: Secret("correct horse")), metadata: key(text))
            }
            func signIn(key text: Text) throws -> AccountsSignInWithPasswordResponse {
                try scene.identity.client.call(
                    "postern.v1.Accounts/SignInWithPassword",
                    AccountsSignInWithPasswordRequest(email: "ann@example.com", password: Secret("correct horse")),
                    metadata: key(text))
            }
            try scene.update(["before_create", "before_sign_in"])
            for hook in ["before_create", "before_sign_in"] { scene.script.set(hook, #"{"allow":true}"#) }
            let made = try signUp("ann@example.com", key: "k1")
            let signedIn = try signIn(key: "k2")
            #expect(scene.script.asked.count == 3)
            for hook in ["before_create", "before_sign_in"] { scene.script.set(hook, #"{"allow":false}"#) }
            let madeAgain = try signUp("ann@example.com", key: "k1")
            #expect(madeAgain.user?.uid == made.user?.uid)
            #expect(madeAgain.tokens?.refreshToken == made.tokens?.refreshToken)
            #expect(try signIn(key: "k2").tokens?.refreshToken == signedIn.tokens?.refreshToken)
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try signUp("bob@example.com", key: "k1") }
            #expect(scene.script.asked.count == 3)
            // Another key is another request.
            expectRefusal("BLOCKED_BY_HOOK") { _ = try signIn(key: "k3") }
            expectRefusal("BLOCKED_BY_HOOK") { _ = try signUp("bob@example.com", key: "k4") }
        }
    }
}
