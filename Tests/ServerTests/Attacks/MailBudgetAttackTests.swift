import Base
import Identity
import Messages
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
            #expect(sent(to: "ada@example.com") == [5, 5, 0])
            #expect(sent(to: "free@example.com") == [5, 5, 0])
            #expect(try client.mails().map(\.message.to) == [Text](repeating: "free@example.com", count: 10))
            // A change to the address that the account has already is asked for by its owner.
            #expect(Self.change(client, ada, to: "ada@example.com").reason.isEmpty)
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
