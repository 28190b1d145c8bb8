import Base
import Identity
import Messages
import TestSupport
import Testing

/// Codes that go to a mailbox: asked for, read in the outbox, used once.
@Suite struct OobCodeTests {
    // MARK: Verifying

    @Test func aVerificationLinkVerifiesTheEmailOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("Ada@example.com")
            try client.sendOob(.verifyEmail, idToken: made.tokens!.idToken)
            let mail = try #require(try client.mails().first)
            #expect(mail.message.to == "Ada@example.com" && mail.message.state == .held)
            #expect(mail.contents.link.string.contains("mode=verifyEmail&oobCode="))
            #expect(mail.contents.text.string.contains(mail.contents.link.string))
            let checked = try client.checkOob(mail.code)
            #expect(checked.requestType == .verifyEmail && checked.email == "Ada@example.com")
            #expect(try client.applyOob(mail.code).email == "Ada@example.com")
            #expect(try client.get(made.user!.uid).emailVerified)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(mail.code) }
            // Nobody was signed out.
            _ = try client.lookup(made.tokens!.idToken)
        }
    }

    @Test func codesExpireAndANewerVerificationVoidsTheOlderOne() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            try client.sendOob(.verifyEmail, idToken: idToken)
            try client.sendOob(.verifyEmail, idToken: idToken)
            let mails = try client.mails()
            #expect(mails.count == 2)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(mails[1].code) }
            server.clock.advance(by: .seconds(3_598))
            _ = try client.checkOob(mails[0].code)
            server.clock.advance(by: .seconds(2))
            expectRefusal("EXPIRED_OOB_CODE") { _ = try client.checkOob(mails[0].code) }
            expectRefusal("EXPIRED_OOB_CODE") { _ = try client.applyOob(mails[0].code) }
            server.clock.advance(by: .hours(25))
            await server.project.sweep()
            expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(mails[0].code) }
        }
    }

    @Test func aCodeIsOfItsTenantAndItsKind() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            try client.sendOob(.verifyEmail, idToken: idToken)
            let code = try #require(try client.mails().first).code
            let foreign = failure {
                let _: AccountsApplyOobCodeResponse = try client.client.call(
                    "postern.v1.Accounts/ApplyOobCode", AccountsApplyOobCodeRequest(tenantID: "acme", oobCode: code))
            }
            #expect(foreign.reason == "INVALID_OOB_CODE")
            #expect(Self.resetReason(client, code) == "INVALID_OOB_CODE")
            #expect(Self.resetReason(client, Secret([])) == "MISSING_OOB_CODE")
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            #expect(Self.linkReason(client, "ada@example.com", code) == "INVALID_OOB_CODE")
            _ = try client.applyOob(code)
        }
    }

    private static func resetReason(_ client: IdentityClient, _ code: Secret, _ password: Text = "another horse")
        -> String
    {
        failure { _ = try client.resetPassword(code, password) }.reason
    }

    private static func linkReason(_ client: IdentityClient, _ email: Text, _ code: Secret) -> String {
        failure { _ = try client.signIn(email, link: code) }.reason
    }

    // MARK: Resetting a password

    @Test func aResetSetsThePasswordVerifiesTheEmailAndEndsSessions() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ADA@example.com")
            let mail = try #require(try client.mails().first)
            // The mail goes to the address as stored, not as the request wrote it.
            #expect(mail.message.to == "ada@example.com")
            // A refused password does not use the code up.
            #expect(Self.resetReason(client, mail.code, "short") == "WEAK_PASSWORD")
            _ = try client.resetPassword(mail.code, "another horse")
            #expect(Self.resetReason(client, mail.code) == "INVALID_OOB_CODE")
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(made.tokens!.idToken) }
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("ada@example.com") }
            let user = try #require(try client.signIn("ada@example.com", password: "another horse").user)
            #expect(user.uid == made.user?.uid && user.emailVerified)
        }
    }

    @Test func aResetOfAVerifiedAccountKeepsItsProviders() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signIn(.google()).user).uid
            try client.sendOob(.passwordReset, email: "ada@gmail.com")
            _ = try client.resetPassword(try #require(try client.mails().first).code, "another horse")
            #expect(try client.get(uid).providers.map(\.providerID) == ["google.com", "password"])
        }
    }

    @Test func theAnswerTellsNothingAboutUnknownAddresses() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("known@example.com")
            #expect(try client.sendOob(.passwordReset, email: "known@example.com") == "known@example.com")
            #expect(try client.sendOob(.passwordReset, email: "nobody@example.com") == "nobody@example.com")
            #expect(try client.mails().map(\.message.to) == ["known@example.com"])
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            expectRefusal("EMAIL_NOT_FOUND") { try client.sendOob(.passwordReset, email: "nobody@example.com") }
        }
    }

    @Test func aDisabledAccountStaysDisabled() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            try client.sendOob(.passwordReset, email: "ada@example.com")
            _ = try client.resetPassword(try #require(try client.mails().first).code, "another horse")
            expectRefusal("USER_DISABLED") { _ = try client.signIn("ada@example.com", password: "another horse") }
        }
    }

    // MARK: Changing the email

    @Test func aNewEmailIsProvedAndTheOldOneCanTakeItBack() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("old@example.com")
            try client.verifyEmail(made.tokens!.idToken)
            try client.sendOob(.verifyAndChangeEmail, newEmail: "new@example.com", idToken: made.tokens!.idToken)
            let change = try #require(try client.mails().first)
            #expect(change.message.to == "new@example.com")
            #expect(try client.applyOob(change.code).email == "new@example.com")
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(made.tokens!.idToken) }
            let changed = try #require(try client.signIn("new@example.com").user)
            #expect(changed.uid == made.user?.uid && changed.emailVerified)
            let recovery = try #require(try client.mails().first)
            #expect(recovery.message.requestType == .recoverEmail && recovery.message.to == "old@example.com")
            server.clock.advance(by: .hours(24 * 6))
            #expect(try client.applyOob(recovery.code).email == "old@example.com")
            // The code proves only the mailbox, so the password is gone: whoever changed the email knows it.
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("old@example.com") }
            #expect(try client.get(made.user!.uid).providers.isEmpty)
        }
    }

    @Test func anEmailChangeIsRefusedInOrderAndTellsNothing() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("taken@example.com")
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            func reason(_ newEmail: Text, _ idToken: Text) -> String {
                failure {
                    try client.sendOob(.verifyAndChangeEmail, newEmail: newEmail, idToken: idToken)
                }.reason
            }
            #expect(reason("new@example.com", "") == "MISSING_ID_TOKEN")
            #expect(reason("", idToken) == "MISSING_NEW_EMAIL")
            #expect(reason("nonsense", idToken) == "INVALID_EMAIL")
            #expect(reason("taken@example.com", idToken) == "")
            #expect(try client.mails().isEmpty)
            server.clock.advance(by: .seconds(301))
            #expect(reason("new@example.com", idToken) == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        }
    }

    @Test func aCodeForAnEmailTheAccountNoLongerHasIsVoid() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            try client.sendOob(.verifyEmail, idToken: made.tokens!.idToken)
            let code = try #require(try client.mails().first).code
            try client.update(made.user!.uid, ["email"]) { $0.email = "new@example.com" }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(code) }
            #expect(try !client.get(made.user!.uid).emailVerified)
        }
    }

    // MARK: Signing in by link

    @Test func aLinkSignsUpThenInAndShowsAsAWayIn() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            expectRefusal("OPERATION_NOT_ALLOWED") { try client.sendOob(.emailSignin, email: "ada@example.com") }
            try client.setTenant(["enable_email_link_signin", "enable_email_privacy"]) {
                $0.enableEmailLinkSignin = true
            }
            try client.sendOob(.emailSignin, email: "ada@example.com")
            let first = try #require(try client.mails().first)
            #expect(try client.checkOob(first.code).email.isEmpty)
            #expect(Self.linkReason(client, "eve@example.com", first.code) == "INVALID_EMAIL")
            let made = try client.signIn("ADA@example.com", link: first.code)
            #expect(made.isNewUser && made.user?.emailVerified == true)
            #expect(Self.linkReason(client, "ada@example.com", first.code) == "INVALID_OOB_CODE")
            let methods: AccountsCreateAuthUriResponse = try client.client.call(
                "postern.v1.Accounts/CreateAuthUri", AccountsCreateAuthUriRequest(identifier: "ada@example.com"))
            #expect(methods.registered && methods.signInMethods == ["emailLink"])
            try client.sendOob(.emailSignin, email: "ada@example.com")
            let again = try client.signIn("ada@example.com", link: try #require(try client.mails().first).code)
            #expect(!again.isNewUser && again.user?.uid == made.user?.uid)
        }
    }

    @Test func withSignUpOffAnUnknownAddressIsSentNothing() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try client.sendOob(.emailSignin, email: "early@example.com")
            let early = try #require(try client.mails().first).code
            _ = try client.signUp("known@example.com")
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            try client.sendOob(.emailSignin, email: "nobody@example.com")
            try client.sendOob(.emailSignin, email: "known@example.com")
            let mails = try client.mails()
            #expect(mails.map(\.message.to) == ["known@example.com", "early@example.com"])
            // A link from before the switch makes no user either, and the refusal does not use its code up.
            for _ in 0..<2 {
                #expect(Self.linkReason(client, "early@example.com", early) == "ADMIN_RESTRICTED_OPERATION")
            }
            #expect(!(try client.signIn("known@example.com", link: mails[0].code).isNewUser))
        }
    }

    @Test func anAnonymousUserMayLinkItsMailbox() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin", "enable_anonymous_user"]) {
                $0.enableEmailLinkSignin = true
                $0.enableAnonymousUser = true
            }
            let anonymous = try client.signUp()
            try client.sendOob(.emailSignin, email: "ada@example.com")
            let code = try #require(try client.mails().first).code
            let linked = try client.signIn("ada@example.com", link: code, linkingTo: anonymous.tokens!.idToken)
            #expect(linked.user?.uid == anonymous.user?.uid)
            #expect(linked.user?.email == "ada@example.com" && linked.user?.emailVerified == true)
        }
    }

    // MARK: Limits and the admin's side

    @Test func aMailboxGetsFiveMailsAnHour() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            for address in ["ada@example.com", "nobody@example.com"] as [Text] {
                for _ in 0..<5 { try client.sendOob(.passwordReset, email: address) }
                let refused = failure { try client.sendOob(.passwordReset, email: address) }
                #expect(refused.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
                let wait = try #require(refused.retryAfter)
                #expect(wait > .minutes(11) && wait <= .minutes(12))
            }
            server.clock.advance(by: .minutes(12))
            try client.sendOob(.passwordReset, email: "ada@example.com")
        }
    }

    @Test func anAdminMakesALinkWithoutSendingIt() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            try client.setTenant(["allowed_continue_domains"]) { $0.allowedContinueDomains = ["app.example"] }
            let made: UsersGenerateOobLinkResponse = try client.client.call(
                "postern.v1.Users/GenerateOobLink",
                UsersGenerateOobLinkRequest(
                    requestType: .verifyEmail, email: "ada@example.com", continueURL: "https://app.example/done?a=b&c"))
            let link = made.oobLink.withBytes { String(decoding: $0, as: UTF8.self) }
            #expect(link.hasSuffix("&continueUrl=https%3A%2F%2Fapp.example%2Fdone%3Fa%3Db%26c"))
            #expect(try client.mails().isEmpty)
            _ = try client.applyOob(made.oobCode)
            #expect(try client.get(uid).emailVerified)
        }
    }

    @Test(arguments: ["javascript:alert(1)", "http://evil.example", "/relative", "https://a b", "ftp://x.example"])
    func aContinueURLMustBeSafe(_ url: Text) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let refused = failure { try client.sendOob(.passwordReset, email: "ada@example.com", continueURL: url) }
            #expect(refused.reason == "INVALID_CONTINUE_URI")
        }
    }
}
