import Base
import Identity
import Messages
import Rules
import Service
import TestSupport
import Testing
import Wire

/// Asking which emails have an account, by changes that would give the email to the one who asks.
extension GuessingAttackTests {
    private static let address: Text = "198.51.100.7"

    /// A way to ask; its answer is empty for a free email.
    private struct Asking: Sendable {
        let name: String
        let ask: @Sendable (RawClient, _ email: Text, _ address: Text, _ idToken: Text) throws -> Void
    }

    private static let askBySignUp = Asking(name: "SignUp") { client, email, address, _ in
        _ = try Self.signUp(client, email, address)
    }
    private static let askByUpdate = Asking(name: "Update") { client, email, address, idToken in
        _ = try Self.update(client, email, address, idToken)
    }
    private static let askWithoutWriting = Asking(name: "Update, validate_only") { client, email, address, idToken in
        _ = try Self.update(client, email, address, idToken, validateOnly: true)
    }
    private static let askByCode = Asking(name: "SendOobCode") { client, email, address, idToken in
        let _: AccountsSendOobCodeResponse = try client.call(
            "postern.v1.Accounts/SendOobCode",
            AccountsSendOobCodeRequest(
                requestType: .verifyAndChangeEmail, newEmail: email, idToken: idToken, endUserIP: address))
    }

    private static func signUp(
        _ client: RawClient, _ email: Text, _ address: Text = address, linkingTo idToken: Text = .empty,
        key: Text = .empty
    ) throws -> AccountsSignUpResponse {
        try client.call(
            "postern.v1.Accounts/SignUp",
            AccountsSignUpRequest(
                email: email, password: Secret("correct horse"), endUserIP: address, idToken: idToken),
            metadata: metadata(key))
    }

    private static func update(
        _ client: RawClient, _ email: Text, _ address: Text, _ idToken: Text, validateOnly: Bool = false,
        key: Text = .empty
    ) throws -> AccountsUpdateResponse {
        try client.call(
            "postern.v1.Accounts/Update",
            AccountsUpdateRequest(
                idToken: idToken, updateMask: ProtobufFieldMask(paths: ["email"]), validateOnly: validateOnly,
                email: email, endUserIP: address), metadata: metadata(key))
    }

    private static func metadata(_ key: Text) -> [OutgoingMetadata.Entry] {
        key.isEmpty ? [] : [OutgoingMetadata.Entry(key: "idempotency-key", value: key)]
    }

    /// A tenant without email privacy, with users 0 to 39, and Eve's ID token.
    private static func withUsers(
        _ body: (IdentityClient, RawClient, _ eve: Text) async throws -> Void
    ) async throws {
        try await withServer { server in
            let admin = try IdentityClient(server)
            try admin.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            for number in 0..<40 {
                let _: UsersCreateResponse = try admin.client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(email: Text("user\(number)@example.com")))
            }
            let eve = try #require(try admin.signUp("eve@example.com").tokens).idToken
            try await body(admin, try Guesser(server).client, eve)
        }
    }

    private static func hashCount(_ server: TestServer) -> UInt64 {
        server.project.passwords.computed.all.reduce(0) { $0 + $1.count }
    }

    @Test func `Once the budget is spent, free and taken emails are refused alike`() async throws {
        try await Self.withUsers { _, client, eve in
            let questions = [Self.askBySignUp, Self.askByUpdate, Self.askWithoutWriting, Self.askByCode]
            for (index, question) in questions.enumerated() {
                let address = Text("198.51.100.\(index)")
                for number in 0..<30 {
                    let answer = failure { try question.ask(client, Text("user\(number)@example.com"), address, eve) }
                    #expect(answer.reason == "EMAIL_EXISTS", "\(question.name)")
                }
                for number in 30..<34 {
                    let taken = failure { try question.ask(client, Text("user\(number)@example.com"), address, eve) }
                    let email = Text("free\(index)-\(number)@example.com")
                    let free = failure { try question.ask(client, email, address, eve) }
                    #expect(taken.reason == tooManyAttempts && taken == free, "\(question.name): \(taken) \(free)")
                }
            }
        }
    }

    @Test func `Asking without writing costs the same for free emails`() async throws {
        try await Self.withUsers { admin, client, eve in
            let answers = (0..<40).map { number in
                failure {
                    try Self.askWithoutWriting.ask(client, Text("free\(number)@example.com"), Self.address, eve)
                }.reason
            }
            #expect(answers.prefix(30).allSatisfy { $0.isEmpty })
            #expect(answers.dropFirst(30).allSatisfy { $0 == tooManyAttempts })
            let unchanged = try admin.lookup(eve).email
            #expect(unchanged == "eve@example.com")
        }
    }

    @Test func `An own email is no question`() async throws {
        try await Self.withUsers { _, client, eve in
            for _ in 0..<40 { try Self.askWithoutWriting.ask(client, "eve@example.com", Self.address, eve) }
        }
    }

    @Test func `A reused idempotency key is refused before the email is looked up, for nothing`() async throws {
        try await Self.withUsers { admin, client, _ in
            let eve = try admin.verifiedUser("adam@example.com").idToken
            let first = try Self.signUp(client, "first@example.com", key: "key-1")
            let hashes = Self.hashCount(admin.server)
            for number in 0..<40 {
                for email in ["user\(number)@example.com", "free\(number)@example.com"] {
                    expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try Self.signUp(client, Text(email), key: "key-1") }
                }
            }
            #expect(Self.hashCount(admin.server) == hashes)
            let changed = try Self.update(client, "second@example.com", Self.address, eve, key: "key-2")
            let newer = try #require(changed.tokens).idToken
            for number in 0..<40 {
                for email in ["user\(number)@example.com", "free\(number)@example.com"] {
                    expectRefusal("IDEMPOTENCY_KEY_REUSED") {
                        _ = try Self.update(client, Text(email), Self.address, newer, key: "key-2")
                    }
                }
            }
            // Nothing was charged; the first requests are answered again, also when the budget is spent.
            for number in 0..<31 {
                let answer = failure { _ = try Self.signUp(client, Text("user\(number)@example.com")) }
                #expect(answer.reason == (number < 30 ? "EMAIL_EXISTS" : tooManyAttempts))
            }
            #expect(try Self.signUp(client, "first@example.com", key: "key-1").user?.uid == first.user?.uid)
            _ = try Self.update(client, "second@example.com", Self.address, eve, key: "key-2")
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try Self.signUp(client, "free0@example.com", key: "key-1") }
        }
    }

    @Test func `A hundred honest people behind one address sign up`() async throws {
        try await Self.withUsers { admin, client, _ in
            for number in 0..<100 { _ = try Self.signUp(client, Text("honest\(number)@example.com")) }
            // Anonymous users become known ones, and are not refused either.
            try admin.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            for number in 0..<40 {
                let anonymous = try #require(try admin.signUp().tokens).idToken
                _ = try Self.signUp(client, Text("linked\(number)@example.com"), linkingTo: anonymous)
            }
            let answers = (0..<31).map { number in
                failure { _ = try Self.signUp(client, Text("user\(number)@example.com")) }.reason
            }
            #expect(answers.prefix(30).allSatisfy { $0 == "EMAIL_EXISTS" } && answers.last == tooManyAttempts)
        }
    }

    @Test func `People who have to enroll a second factor sign up as well`() async throws {
        try await Self.withUsers { admin, client, _ in
            try admin.setFactors(.mandatory)
            for number in 0..<40 {
                expectRefusal("SECOND_FACTOR_ENROLLMENT_REQUIRED") {
                    _ = try Self.signUp(client, Text("honest\(number)@example.com"))
                }
            }
        }
    }

    @Test func `Linking a taken email is charged before anything is looked up`() async throws {
        try await Self.withUsers { admin, client, _ in
            try admin.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let anonymous = try #require(try admin.signUp().tokens).idToken
            let answers = ["user", "free"].map { name in
                (0..<31).map { number in
                    failure {
                        _ = try Self.signUp(client, Text("\(name)\(number)@example.com"), linkingTo: anonymous)
                    }.reason
                }
            }
            #expect(answers[0].prefix(30).allSatisfy { $0 == "CREDENTIAL_ALREADY_IN_USE" })
            #expect(answers[0].last == tooManyAttempts && Set(answers[1]) == [tooManyAttempts])
        }
    }

    @Test func `Deleting the account does not give the question back`() async throws {
        try await Self.withUsers { _, client, _ in
            let answers = (0..<40).map { number in
                failure {
                    let made = try Self.signUp(client, Text("free\(number)@example.com"))
                    let _: AccountsDeleteResponse = try client.call(
                        "postern.v1.Accounts/Delete",
                        AccountsDeleteRequest(idToken: try #require(made.tokens).idToken))
                }.reason
            }
            #expect(answers.prefix(30).allSatisfy { $0.isEmpty })
            #expect(answers.dropFirst(30).allSatisfy { $0 == tooManyAttempts })
        }
    }

    /// Without an address, the tenant's budget alone is charged: it makes strangers wait.
    @Test func `Deleting an account that knows no address does not give the question back, either`() async throws {
        try await withServer(configure: { configuration in
            configuration.limits.guessesPerTenantAndHour = 20
            configuration.limits.strangerWaitMax = .milliseconds(1)
        }) { server in
            let admin = try IdentityClient(server)
            try admin.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let client = try Guesser(server).client
            for number in 0..<30 {
                let made = try Self.signUp(client, Text("free\(number)@example.com"), "")
                let _: AccountsDeleteResponse = try client.call(
                    "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: try #require(made.tokens).idToken))
            }
            #expect(server.project.guesses.counters.delayed.value >= 9)
        }
    }

    @Test func `A change of a proved email is given back, and one that follows is not`() async throws {
        try await Self.withUsers { admin, client, _ in
            let honest = try (0..<35).map { try admin.verifiedUser(Text("honest\($0)@example.com")).idToken }
            var idToken = Text.empty
            for (number, token) in honest.enumerated() {
                let changed = try Self.update(client, Text("moved\(number)@example.com"), Self.address, token)
                idToken = try #require(changed.tokens).idToken
            }
            let answers = (0..<31).map { number in
                failure {
                    let changed = try Self.update(client, Text("free\(number)@example.com"), Self.address, idToken)
                    idToken = try #require(changed.tokens).idToken
                }.reason
            }
            #expect(answers.prefix(30).allSatisfy { $0.isEmpty } && answers.last == tooManyAttempts)
        }
    }
}
