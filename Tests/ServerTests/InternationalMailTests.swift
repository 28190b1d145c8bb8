import Base
import Identity
import Messages
import TestSupport
import Testing

/// Emails beyond ASCII are accepted where a tenant says so, and users who have them keep them.
@Suite struct InternationalMailTests {
    private static let address: Text = "J\u{FC}rgen@ex\u{E4}mple.com"
    /// The same to the eye: "u" and a combining diaeresis.
    private static let decomposed: Text = "Ju\u{308}rgen@ex\u{E4}mple.com"

    private static func allow(_ isAllowed: Bool, _ client: IdentityClient) throws {
        try client.setTenant(["allow_international_email", "enable_email_link_signin"]) {
            $0.allowInternationalEmail = isAllowed
            $0.enableEmailLinkSignin = true
        }
    }

    /// Every way in which an address gets into an account, with the call for it.
    private enum Entrance: CaseIterable {
        case signUp, linkPassword, change, update, usersCreate, usersUpdate, usersImport

        func enter(_ email: Text, _ client: IdentityClient, uid: Text, idToken: Text) throws {
            switch self {
            case .signUp: _ = try client.signUp(email)
            case .linkPassword: _ = try client.signUp(email, linkingTo: client.signUp().tokens!.idToken)
            case .change: try client.sendOob(.verifyAndChangeEmail, newEmail: email, idToken: idToken)
            case .update:
                let _: AccountsUpdateResponse = try client.client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: idToken, updateMask: ProtobufFieldMask(paths: ["email"]), email: email))
            case .usersCreate:
                let _: UsersCreateResponse = try client.client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(email: email))
            case .usersUpdate: try client.update(uid, ["email"]) { $0.email = email }
            case .usersImport:
                let answer = try ImportTests.importing(client.client, [ImportUser(uid: "imported", email: email)])
                if let rejection = answer.rejections.first {
                    throw Failure(.invalidArgument, rejection.reason.string, "")
                }
            }
        }
    }

    @Test func anEncodedDomainOfBeforeIsStillFound() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let encoded: Text = "ada@xn--mnchen-3ya.example"
            let uid = try client.signUp(encoded).user!.uid
            try Self.allow(true, client)
            let found: UsersGetByEmailResponse = try client.client.call(
                "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(email: encoded))
            #expect(found.user?.uid == uid)
            let second = failure { _ = try client.signUp("bob@xn--mnchen-3ya.example") }
            #expect(second.reason == "INVALID_EMAIL")
        }
    }

    @Test func anAddressComesInWhereTheTenantAllowsItAndInOneSpellingOnly() async throws {
        for entrance in Entrance.allCases {
            try await withServer { server in
                let client = try IdentityClient(server)
                try client.setTenant(["enable_email_privacy", "enable_anonymous_user"]) {
                    $0.enableAnonymousUser = true
                }
                let made = try client.signUp("ada@example.com")
                let (uid, idToken) = (made.user!.uid, made.tokens!.idToken)
                func reason(_ email: Text) -> String {
                    failure { try entrance.enter(email, client, uid: uid, idToken: idToken) }.reason
                }
                #expect(reason(Self.address) == "INVALID_EMAIL", "\(entrance)")
                for bad: Text in ["a@example.com.", "a@b..example", "a@.example", "a@-b.example", "a@b-.example"] {
                    #expect(reason(bad) == "INVALID_EMAIL", "\(entrance) \(bad)")
                }
                try Self.allow(true, client)
                #expect(reason("a@xn--mnchen-3ya.example") == "INVALID_EMAIL", "\(entrance)")
                #expect(reason(Self.decomposed) == "INVALID_EMAIL", "\(entrance)")
                #expect(reason("a\u{202E}b@example.com") == "INVALID_EMAIL", "\(entrance)")
                #expect(reason(Self.address).isEmpty, "\(entrance)")
            }
        }
    }

    @Test func onlyCapitalsOfASCIIAreTheSameAsSmallOnes() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.allow(true, client)
            let made = try client.signUp(Self.address)
            #expect(made.user?.email == Self.address)
            #expect(try client.signIn("j\u{FC}RGEN@ex\u{E4}mple.COM").user?.uid == made.user?.uid)
            expectRefusal("EMAIL_EXISTS") { _ = try client.signUp("j\u{FC}rgen@ex\u{E4}mple.com") }
            expectRefusal("INVALID_EMAIL") { _ = try client.signIn(Self.decomposed) }
            // Another letter, another person.
            #expect(try client.signUp("J\u{DC}rgen@ex\u{E4}mple.com").user?.uid != made.user?.uid)
        }
    }

    @Test func whoHasAnAddressKeepsItWhenTheSettingIsSwitchedOff() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.allow(true, client)
            let uid = try client.signUp(Self.address).user!.uid
            try client.sendOob(.emailSignin, email: "unknown\u{FC}@example.com")
            let unknownsCode = try #require(try client.mails().first).code
            try Self.allow(false, client)
            #expect(try client.signIn(Self.address).user?.uid == uid)
            let found: UsersGetByEmailResponse = try client.client.call(
                "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(email: Self.address))
            #expect(found.user?.uid == uid)
            try client.sendOob(.passwordReset, email: Self.address)
            _ = try client.resetPassword(try #require(try client.mails().first).code, "another horse")
            #expect(try client.signIn(Self.address, password: "another horse").user?.uid == uid)
            // A change of something else, and a change away and back by the mail to the old address.
            try client.update(uid, ["display_name"]) { $0.displayName = "J" }
            let idToken = try client.signIn(Self.address, password: "another horse").tokens!.idToken
            try client.sendOob(.verifyAndChangeEmail, newEmail: "plain@example.com", idToken: idToken)
            _ = try client.applyOob(try #require(try client.mails().first).code)
            let back = try #require(try client.mails().first { $0.message.requestType == .recoverEmail })
            #expect(back.message.to == Self.address)
            #expect(try client.applyOob(back.code).email == Self.address)
            // New users are refused, though, even with a link from before; and the answer does not tell who is new.
            expectRefusal("INVALID_EMAIL") { _ = try client.signIn("unknown\u{FC}@example.com", link: unknownsCode) }
            let count = try client.mails().count
            try client.sendOob(.emailSignin, email: "nobody\u{FC}@example.com")
            #expect(try client.mails().count == count)
            try client.sendOob(.emailSignin, email: Self.address)
            let link = try #require(try client.mails().first).code
            #expect(try client.signIn(Self.address, link: link).user?.uid == uid)
        }
    }

    /// The address is taken from an account that was moved to it, and gets into a new one.
    @Test func aPasswordResetMakesNoAccountWithSuchAnAddressAfterwards() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.allow(true, client)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let made = try EmailRecoveryTests.verifiedAccount(client, "ada@example.com")
            let uid = try client.lookup(made.idToken).uid
            _ = try EmailRecoveryTests.move(client, to: Self.address, made.idToken)
            try client.sendOob(.passwordReset, email: Self.address)
            let code = try EmailRecoveryTests.newestCode(client, .passwordReset)
            try Self.allow(false, client)
            expectRefusal("INVALID_EMAIL") { _ = try client.resetPassword(code, "another horse") }
            #expect(try client.get(uid).email == Self.address)
            try Self.allow(true, client)
            _ = try client.resetPassword(code, "another horse")
            let other = try client.find(Self.address)
            #expect(other.uid != uid && other.emailVerified)
            #expect(try client.get(uid).email == "ada@example.com")
        }
    }

    @Test func aChangeThatWasAskedForBeforeIsNotMadeAfterwards() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.allow(true, client)
            let made = try client.signUp("ada@example.com")
            try client.sendOob(.verifyAndChangeEmail, newEmail: Self.address, idToken: made.tokens!.idToken)
            let code = try #require(try client.mails().first).code
            try Self.allow(false, client)
            expectRefusal("INVALID_EMAIL") { _ = try client.applyOob(code) }
            try Self.allow(true, client)
            #expect(try client.applyOob(code).email == Self.address)
            #expect(try client.get(made.user!.uid).emailVerified)
        }
    }
}
