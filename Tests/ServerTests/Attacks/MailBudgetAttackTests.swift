import Base
import Identity
import Messages
import Service
import TestSupport
import Testing

/// Somebody has mail sent to another person's mailbox, or decoys of it, so that the person gets no mail of their own.
@Suite struct MailBudgetAttackTests {
    private static let tooMany = "TOO_MANY_ATTEMPTS_TRY_LATER"

    private static func change(_ client: IdentityClient, _ tokens: TokenPair, to email: Text) -> Failure {
        failure { try client.sendOob(.verifyAndChangeEmail, newEmail: email, idToken: tokens.idToken) }
    }

    @Test func `Changes to a taken address use up no mail of its owner`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let ada = try #require(try client.signUp("ada@example.com").tokens)
            let mallory = try #require(try client.signUp("mallory@example.com").tokens)
            for _ in 0..<5 { #expect(Self.change(client, mallory, to: "ada@example.com").reason.isEmpty) }
            let refused = Self.change(client, mallory, to: "ADA@example.com")
            #expect(refused.reason == Self.tooMany)
            #expect(try #require(refused.retryAfter) > .seconds(3_500))
            try client.sendOob(.passwordReset, email: "ada@example.com")
            try client.sendOob(.verifyEmail, idToken: ada.idToken)
            // The changes were decoys.
            #expect(try client.mails().map(\.message.requestType) == [.verifyEmail, .passwordReset])
            // Another address has budgets of its own.
            #expect(Self.change(client, mallory, to: "new@example.com").reason.isEmpty)
        }
    }

    @Test func `Many accounts share a budget, and taken and free addresses are charged alike`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let ada = try #require(try client.signUp("ada@example.com").tokens)
            let askers = try (0..<3).map { number in
                try #require(try client.signUp(Text("m\(number)@example.com")).tokens)
            }
            func sent(to email: Text) -> [Int] {
                askers.map { asker in
                    (0..<6).count { _ in Self.change(client, asker, to: email).reason.isEmpty }
                }
            }
            // Once half is spent, an account that has asked before waits for the others.
            #expect(sent(to: "ada@example.com") == [5, 1, 1])
            #expect(sent(to: "free@example.com") == [5, 1, 1])
            #expect(try client.mails().map(\.message.to) == [Text](repeating: "free@example.com", count: 7))
            // A change to the address that the account has already is asked for by its owner.
            #expect(Self.change(client, ada, to: "ada@example.com").reason.isEmpty)
        }
    }

    @Test func `The last half of the budget is for accounts that have not asked`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let askers = try (0..<11).map { number in
                try #require(try client.signUp(Text("m\(number)@example.com")).tokens)
            }
            for asker in askers[..<2] {
                while Self.change(client, asker, to: "new@example.com").reason.isEmpty {}
            }
            // Six mails are spent, and four accounts get the others.
            let reasons = askers[2...].map { Self.change(client, $0, to: "new@example.com").reason }
            #expect(reasons == [String](repeating: "", count: 4) + [String](repeating: Self.tooMany, count: 5))
        }
    }

    @Test func `An address, or a network of IPv6, has one budget for mails to all mailboxes`() async throws {
        try await withServer(configure: { $0.limits.sendsPerAddressAndHour = 3 }) { server in
            let client = try server.client(as: .app, of: nil, trustsEndUserIP: true)
            func send(_ number: Int, from address: Text) throws {
                let _: AccountsSendOobCodeResponse = try client.call(
                    "postern.v1.Accounts/SendOobCode",
                    AccountsSendOobCodeRequest(
                        requestType: .passwordReset, email: Text("m\(number)@example.com"), endUserIP: address))
            }
            for number in 0..<3 { try send(number, from: Text("2001:db8:0:7::\(number)")) }
            let refused = failure { try send(3, from: "2001:db8:0:7:ffff::1") }
            #expect(refused.reason == Self.tooMany)
            try send(3, from: "2001:db8:0:8::1")
            // One mail comes back in a third of an hour.
            server.clock.advance(by: try #require(refused.retryAfter))
            try send(4, from: "2001:db8:0:7::1")
            #expect(try #require(failure { try send(5, from: "2001:db8:0:7::1") }.retryAfter) == .minutes(20))
        }
    }

    /// The resets for an address without an account are decoys, which nobody sees.
    @Test(arguments: ["ada@example.com", "nobody@example.com"] as [Text])
    func `Each kind of mail has a budget of its own, with and without an account`(email: Text) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            _ = try client.signUp("ada@example.com")
            for _ in 0..<5 { try client.sendOob(.passwordReset, email: email) }
            expectRefusal(Self.tooMany) { try client.sendOob(.passwordReset, email: email) }
            for _ in 0..<5 { try client.sendOob(.emailSignin, email: email) }
            expectRefusal(Self.tooMany) { try client.sendOob(.emailSignin, email: email) }
            let mail = try #require(try client.mails().first)
            #expect(mail.message.requestType == .emailSignin)
            #expect(try client.signIn(email, link: mail.code).user?.email == email)
        }
    }

    /// At any time the owner may ask for a code, or has one in the mailbox that is still good: a stranger asks whenever
    /// the budget allows it, and the owner looks at every minute of three hours.
    @Test(arguments: [OobRequestType.emailSignin, .passwordReset])
    func `Somebody who spends a mailbox's budget leaves its owner a good code`(kind: OobRequestType) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            _ = try client.signUp("ada@example.com")
            var newest: Secret?
            var sentCount = 0
            for minute in 0..<180 {
                while (try? client.sendOob(kind, email: "ada@example.com")) != nil {
                    sentCount += 1
                    newest = try #require(try client.mails().first).code
                }
                let code = try #require(newest)
                #expect(throws: Never.self, "minute \(minute)") { try client.checkOob(code) }
                server.clock.advance(by: .minutes(1))
            }
            // Five at once, then one every twelve minutes.
            #expect(sentCount == 5 + 14)
        }
    }

    /// Otherwise somebody who asks again and again would void the code that the owner is about to use.
    @Test(arguments: [OobRequestType.emailSignin, .passwordReset])
    func `A code that anybody may ask for voids no older one until it is used`(kind: OobRequestType) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            _ = try client.signUp("ada@example.com")
            for _ in 0..<5 { try client.sendOob(kind, email: "ada@example.com") }
            let codes = try client.mails().map(\.code)
            #expect(codes.count == 5)
            for code in codes { _ = try client.checkOob(code) }
            // The oldest is used, and the others go with it.
            if kind == .emailSignin {
                _ = try client.signIn("ada@example.com", link: codes[4])
            } else {
                _ = try client.resetPassword(codes[4], "another horse")
            }
            for code in codes { expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(code) } }
        }
    }

    @Test func `A mailbox has at most ten codes of a kind, and the oldest goes first`() async throws {
        try await withServer(configure: { $0.limits.sendsPerMailboxAndHour = 12 }) { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            for _ in 0..<12 { try client.sendOob(.passwordReset, email: "ada@example.com") }
            let codes = try client.mails().map(\.code)
            for code in codes.prefix(10) { _ = try client.checkOob(code) }
            for code in codes.dropFirst(10) { expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(code) } }
            #expect(codes.count == 12)
        }
    }

    /// Somebody signs up with a stranger's email while a sign-in link is on its way there, and leaves the email again.
    @Test(arguments: ["delete", "move"])
    func `An account whose user only typed the email voids no link to it`(by way: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try client.sendOob(.emailSignin, email: "ada@example.com")
            let link = try EmailRecoveryTests.newestCode(client, .emailSignin)
            let idToken = try #require(try client.signUp("ada@example.com").tokens).idToken
            if way == "delete" {
                let _: AccountsDeleteResponse = try client.client.call(
                    "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: idToken))
            } else {
                _ = try EmailRecoveryTests.move(client, to: "mallory@example.com", idToken)
            }
            #expect(try client.signIn("ada@example.com", link: link).isNewUser)
        }
    }

    @Test func `Mails that anybody may ask for leave the owner's own mails`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let ada = try #require(try client.signUp("ada@example.com").tokens)
            for _ in 0..<5 { try client.sendOob(.passwordReset, email: "ada@example.com") }
            expectRefusal(Self.tooMany) { try client.sendOob(.passwordReset, email: "ada@example.com") }
            for _ in 0..<5 { try client.sendOob(.verifyEmail, idToken: ada.idToken) }
            expectRefusal(Self.tooMany) { try client.sendOob(.verifyEmail, idToken: ada.idToken) }
        }
    }
}
