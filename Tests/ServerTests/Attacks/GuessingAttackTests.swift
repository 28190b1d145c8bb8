import Base
import Messages
import TestSupport
import Testing

/// Guessing passwords and probing for accounts from few addresses, over many accounts and tenants.
@Suite struct GuessingAttackTests {
    @Test func `300 sign-ups of taken addresses from one address learn a few dozen`() async throws {
        try await withServer { server in
            let admin = try IdentityClient(server)
            for number in 0..<300 {
                let _: UsersCreateResponse = try admin.client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(email: Text("user\(number)@example.com")))
            }
            let guesser = try Guesser(server)
            let refusals = (0..<300).map { guesser.signUp(Text("user\($0)@example.com"), from: "198.51.100.7") }
            let learned = refusals.count { $0.reason == "EMAIL_EXISTS" }
            #expect(learned == 30)
            #expect(refusals.suffix(200).allSatisfy { $0.reason == tooManyAttempts && $0.retryAfter != nil })
            #expect(guesser.signUp("user299@example.com", from: "198.51.100.8").reason == "EMAIL_EXISTS")
        }
    }

    @Test func `One password over 60 accounts from one address is refused after 30`() async throws {
        try await withServer { server in
            let guesser = try Guesser(server)
            let refusals = (0..<60).map {
                guesser.tryPassword("Spring2026!", of: Text("user\($0)@example.com"), from: "198.51.100.7")
            }
            #expect(refusals.prefix(30).allSatisfy { $0.reason == wrongCredentials })
            #expect(refusals.dropFirst(30).allSatisfy { $0.reason == tooManyAttempts && $0.retryAfter == .seconds(10) })
        }
    }

    @Test func `One password over 60 tenants from one address is refused after 30`() async throws {
        try await withServer { server in
            let admin = try IdentityClient(server)
            let guesser = try Guesser(server)
            let refusals = try (0..<60).map { number in
                let tenantID = Text("tenant-\(number)")
                let _: TenantsCreateResponse = try admin.client.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
                return guesser.tryPassword(
                    "Spring2026!", of: "ada@example.com", from: "198.51.100.7", tenantID: tenantID)
            }
            #expect(refusals.prefix(30).allSatisfy { $0.reason == wrongCredentials })
            #expect(refusals.dropFirst(30).allSatisfy { $0.reason == tooManyAttempts && $0.retryAfter != nil })
        }
    }

    @Test func `Many spellings of one address are one address`() async throws {
        try await withServer { server in
            let guesser = try Guesser(server)
            let spellings = Self.spellings
            #expect(Set(spellings).count == 40)
            let reasons = spellings.map { spelling in
                guesser.tryPassword("Spring2026!", of: "ada@example.com", from: spelling).reason
            }
            #expect(reasons.prefix(6).allSatisfy { $0 == wrongCredentials })
            #expect(reasons.dropFirst(6).allSatisfy { $0 == tooManyAttempts })
        }
    }

    /// 40 ways to write addresses of 2001:db8:0:a::/64: letters in both cases, zeros left out or not, other hosts.
    private static var spellings: [Text] {
        let hosts = ["1", "01", "001", "0001", "2", "ab", "AB", "Ab", "aB", "00ab"]
        return ["2001:db8:0:a::", "2001:DB8::a:0:0:0:", "2001:0db8:0000:000a:0000:0000:0000:", "2001:Db8:0:A:0:0:0:"]
            .flatMap { prefix in hosts.map { Text(prefix + $0) } }
    }

    /// Six kinds of requests whose answers tell whether an account exists, each sent 40 times from one address.
    @Test func `No question that tells who has an account is answered often`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            for number in 0..<40 {
                let _: UsersCreateResponse = try client.client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(email: Text("user\(number)@example.com")))
            }
            let eve = try client.signUp("eve@example.com")
            let questions = Self.questions(eve.tokens?.idToken ?? .empty)
            for (index, question) in questions.enumerated() {
                let guesser = try Guesser(server)
                let address = Text("198.51.100.\(index)")
                let refusals = (0..<40).map { number in
                    failure { try question.ask(guesser.client, Text("user\(number)@example.com"), address) }.reason
                }
                #expect(refusals.prefix(30).allSatisfy { $0 == question.answer }, "\(question.name): \(refusals[0])")
                #expect(refusals.dropFirst(30).allSatisfy { $0 == tooManyAttempts }, "\(question.name)")
            }
        }
    }

    private struct Question: Sendable {
        let name: String
        let answer: String
        let ask: @Sendable (RawClient, Text, Text) throws -> Void
    }

    private static func questions(_ idToken: Text) -> [Question] {
        [
            Question(name: "SignUp", answer: "EMAIL_EXISTS") { client, email, address in
                let _: AccountsSignUpResponse = try client.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(email: email, password: Secret("correct horse"), endUserIP: address))
            },
            Question(name: "SignInWithPassword", answer: "INVALID_PASSWORD") { client, email, address in
                let _: AccountsSignInWithPasswordResponse = try client.call(
                    "postern.v1.Accounts/SignInWithPassword",
                    AccountsSignInWithPasswordRequest(email: email, password: Secret("wrong"), endUserIP: address))
            },
            Question(name: "CreateAuthUri", answer: "") { client, email, address in
                let _: AccountsCreateAuthUriResponse = try client.call(
                    "postern.v1.Accounts/CreateAuthUri",
                    AccountsCreateAuthUriRequest(identifier: email, endUserIP: address))
            },
            Question(name: "PASSWORD_RESET", answer: "EMAIL_NOT_FOUND") { client, email, address in
                let _: AccountsSendOobCodeResponse = try client.call(
                    "postern.v1.Accounts/SendOobCode",
                    AccountsSendOobCodeRequest(
                        requestType: .passwordReset, email: Text("no-\(email)"), endUserIP: address))
            },
            Question(name: "VERIFY_AND_CHANGE_EMAIL", answer: "EMAIL_EXISTS") { client, email, address in
                let _: AccountsSendOobCodeResponse = try client.call(
                    "postern.v1.Accounts/SendOobCode",
                    AccountsSendOobCodeRequest(
                        requestType: .verifyAndChangeEmail, newEmail: email, idToken: idToken, endUserIP: address))
            },
            Question(name: "Update", answer: "EMAIL_EXISTS") { client, email, address in
                let _: AccountsUpdateResponse = try client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: idToken, updateMask: ProtobufFieldMask(paths: ["email"]), validateOnly: true,
                        email: email, endUserIP: address))
            },
        ]
    }

    /// The same attempts at an account that exists and at one that does not: 400 refusals and waits, alike.
    @Test func `Nothing in refusals and waits tells whether an account exists`() async throws {
        try await withServer { server in
            _ = try IdentityClient(server).signUp("ada@example.com")
            let guesser = try Guesser(server)
            var random = SeededRandom.printed()
            for _ in 0..<400 {
                server.clock.advance(by: [.zero, .seconds(1), .seconds(40), .minutes(20)][random.below(4)])
                let number = random.below(60)
                let token = Text(String(repeating: "A", count: [0, 10, 76][random.below(3)]))
                // Addresses of their own, so that neither account pays for the other.
                let (first, second) =
                    number == 0 ? ("" as Text, "" as Text) : (Text("192.0.2.\(number)"), Text("198.51.100.\(number)"))
                let known = guesser.tryPassword("x", of: "ada@example.com", from: first, deviceToken: token)
                let unknown = guesser.tryPassword("x", of: "eve@example.com", from: second, deviceToken: token)
                #expect(known == unknown)
            }
        }
    }
}
