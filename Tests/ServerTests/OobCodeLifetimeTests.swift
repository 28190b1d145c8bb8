import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// How long codes in mails are good, and that only their own purpose uses them up.
@Suite struct OobCodeLifetimeTests {
    @Test(arguments: [
        (OobRequestType.verifyEmail, 3_600), (.passwordReset, 3_600), (.verifyAndChangeEmail, 3_600),
        (.emailSignin, 900), (.recoverEmail, 7 * 86_400),
    ])
    func `A code is good until its time and not a moment longer`(_ type: OobRequestType, _ seconds: Int) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let idToken = try #require(try client.signUp("ada@example.com").tokens).idToken
            switch type {
            case .verifyEmail: try client.sendOob(type, idToken: idToken)
            case .passwordReset, .emailSignin: try client.sendOob(type, email: "ada@example.com")
            default:
                if type == .recoverEmail { try client.verifyEmail(idToken) }
                try client.sendOob(.verifyAndChangeEmail, newEmail: "new@example.com", idToken: idToken)
                if type == .recoverEmail { _ = try client.applyOob(try #require(try client.mails().first).code) }
            }
            let mail = try #require(try client.mails().first)
            #expect(mail.message.requestType == type)
            func use() -> String {
                failure {
                    switch type {
                    case .passwordReset: _ = try client.resetPassword(mail.code, "another horse")
                    case .emailSignin: _ = try client.signIn("ada@example.com", link: mail.code)
                    default: _ = try client.applyOob(mail.code)
                    }
                }.reason
            }
            // Applying moves the clock by a millisecond.
            server.clock.advance(by: .seconds(seconds) - .milliseconds(2))
            _ = try client.checkOob(mail.code)
            server.clock.advance(by: .milliseconds(2))
            #expect(use() == "EXPIRED_OOB_CODE")
            // A clock that is set back does not make it good again.
            server.clock.step(by: .minutes(-1))
            #expect(use() == "EXPIRED_OOB_CODE")
        }
    }

    /// The rows that say when codes are forgotten belong to no tenant, so that no quota counts them.
    @Test(arguments: [(OobRequestType.passwordReset, 10), (.verifyEmail, 2), (.emailSignin, 10)])
    func `Of a hundred links for one user only those that are valid wait for their end`(
        _ type: OobRequestType, _ validCount: Int
    ) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: "ada", email: "ada@example.com"))
            let store = server.project.store
            let end = server.project.clock.now() + .hours(24 * 365)
            func sweep() async throws -> Int {
                var (count, isMore) = (0, true)
                while isMore {
                    let slice = try await store.sweep(now: end, limit: 500)
                    count += slice.count
                    isMore = slice.isMore
                }
                return count
            }
            // What other calls left behind.
            _ = try await sweep()
            for _ in 0..<100 {
                let _: UsersGenerateOobLinkResponse = try client.client.call(
                    "postern.v1.Users/GenerateOobLink",
                    UsersGenerateOobLinkRequest(requestType: type, email: "ada@example.com"))
            }
            let codeCount = try store.read { try $0.count(Tables.oobCodes) }
            let dueCount = try await sweep()
            #expect(codeCount == validCount && dueCount == validCount)
            let leftCount = try store.read { try $0.count(Tables.oobCodes) + $0.count(Tables.oobCodeBySubject) }
            #expect(leftCount == 0)
        }
    }

    @Test func `A code for an email that was taken meanwhile waits until it is free`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@example.com")
            try client.sendOob(
                .verifyAndChangeEmail, newEmail: "new@example.com", idToken: user.tokens?.idToken ?? .empty)
            let code = try #require(try client.mails().first).code
            let other = try #require(try client.signUp("NEW@example.com").user).uid
            for _ in 0..<2 { expectRefusal("EMAIL_EXISTS") { _ = try client.applyOob(code) } }
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: other))
            #expect(try client.applyOob(code).email == "new@example.com")
        }
    }

    @Test func `A sign-in link for a disabled account is refused and stays good`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let uid = try #require(try client.signUp("ada@example.com").user).uid
            try client.sendOob(.emailSignin, email: "ada@example.com")
            let code = try #require(try client.mails().first).code
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            expectRefusal("USER_DISABLED") { _ = try client.signIn("ada@example.com", link: code) }
            #expect(try client.get(uid).providers.map(\.providerID) == ["password"])
            try client.update(uid, ["disabled"]) { $0.disabled = false }
            #expect(try client.signIn("ada@example.com", link: code).user?.uid == uid)
        }
    }

    /// A change of the password voids the codes that were asked for in a session. One that is still on its way to the
    /// store must not come after it.
    @Test func aCodeIsNotMadeForASessionThatEndedMeanwhile() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let project = server.project
            let settings = try project.store.read { try project.tenants.settings(of: .empty, in: $0) }
            let idToken = try #require(made.tokens).idToken
            var order = OobOrder(.verifyAndChangeEmail, email: "ada@example.com")
            order.newEmail = "thief@example.com"
            order.uid = try #require(made.user).uid
            let asker = try project.store.read {
                try project.secondFactorEnrollments.user(idToken, settings: settings, in: $0)
            }
            order.requireAsker = { try asker.requireStillProved(settings: settings, now: project.clock.now(), in: $0) }
            let answer = AccountsSendOobCodeResponse()
            try await project.outbox.send(order, answer: answer, settings: settings, origin: .server)
            #expect(try client.mails().count == 1)
            let _: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("a new password")))
            let code = try #require(try client.mails().first).code
            expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(code) }
            await #expect(throws: Failure.self) {
                try await project.outbox.send(order, answer: answer, settings: settings, origin: .server)
            }
            #expect(try client.mails().count == 1)
        }
    }

    @Test func theMailOfASignInLinkGoesToTheEmailAsTheAccountHasIt() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let uid = try #require(try client.signUp("ada@example.com").user).uid
            try client.sendOob(.emailSignin, email: "ADA@Example.com")
            let mail = try #require(try client.mails().first)
            #expect(mail.message.to == "ada@example.com")
            #expect(try client.signIn("ADA@Example.com", link: mail.code).user?.uid == uid)
        }
    }
}
