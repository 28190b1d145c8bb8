import Base
import Messages
import TestSupport
import Testing
import Wire

/// ApplyOobCode and ResetPassword whose answer was lost, sent again with the same idempotency-key. The first request
/// used the code up.
@Suite struct RepeatedMailCodeTests {
    private static let email: Text = "ada@example.com"

    private static func metadata(_ key: Text) -> [OutgoingMetadata.Entry] {
        key.isEmpty ? [] : [OutgoingMetadata.Entry(key: "idempotency-key", value: key)]
    }

    private static func apply(_ client: IdentityClient, _ code: Secret, key: Text) throws
        -> AccountsApplyOobCodeResponse
    {
        try client.client.call(
            "postern.v1.Accounts/ApplyOobCode", AccountsApplyOobCodeRequest(oobCode: code), metadata: metadata(key))
    }

    private static func reset(
        _ client: IdentityClient, _ code: Secret, _ password: Text = "another horse", key: Text
    ) throws -> AccountsResetPasswordResponse {
        try client.client.call(
            "postern.v1.Accounts/ResetPassword",
            AccountsResetPasswordRequest(oobCode: code, newPassword: Secret(password.bytes)), metadata: metadata(key))
    }

    /// A code of the kind for a user with a verified email.
    private static func code(_ client: IdentityClient, _ type: OobRequestType) throws -> Secret {
        let idToken = try EmailRecoveryTests.verifiedAccount(client, email).idToken
        switch type {
        case .verifyAndChangeEmail: try client.sendOob(type, newEmail: "new@example.com", idToken: idToken)
        case .verifyEmail: try client.sendOob(type, idToken: idToken)
        default: try client.sendOob(type, email: email)
        }
        return try EmailRecoveryTests.newestCode(client, type)
    }

    @Test(arguments: [OobRequestType.verifyEmail, .verifyAndChangeEmail])
    func `The repeat of a code's use gets its answer and changes nothing`(_ type: OobRequestType) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let code = try Self.code(client, type)
            let first = try Self.apply(client, code, key: "k1")
            #expect(first.requestType == type)
            #expect(first.email == (type == .verifyEmail ? Self.email : "new@example.com"))
            let (user, mails) = (try client.find(first.email), try client.mails().count)
            #expect(try Self.apply(client, code, key: "k1") == first)
            #expect(try client.find(first.email) == user)
            #expect(try client.mails().count == mails)
            expectRefusal("INVALID_OOB_CODE") { _ = try Self.apply(client, code, key: .empty) }
            expectRefusal("INVALID_OOB_CODE") { _ = try Self.apply(client, code, key: "other") }
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try Self.apply(client, Secret("x"), key: "k1") }
        }
    }

    /// A device token of then would not be worth more by now.
    @Test func `The repeat of a reset gets its answer, without a device token`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let code = try Self.code(client, .passwordReset)
            let first = try Self.reset(client, code, key: "k1")
            #expect(first.email == Self.email && !first.deviceToken.isEmpty)
            let user = try client.find(Self.email)
            let again = try Self.reset(client, code, key: "k1")
            #expect(again.email == first.email && again.deviceToken.isEmpty)
            #expect(try client.find(Self.email) == user)
            expectRefusal("INVALID_OOB_CODE") { _ = try Self.reset(client, code, key: .empty) }
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try Self.reset(client, code, "my own horse", key: "k1") }
            _ = try client.signIn(Self.email, password: "another horse")
            try client.setTenant(["allow_password_signup"]) { $0.allowPasswordSignup = false }
            expectRefusal("PASSWORD_LOGIN_DISABLED") { _ = try Self.reset(client, code, key: "k1") }
        }
    }

    @Test func `The repeat of a reset that made an account gets its answer`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let (ann, code) = try BlockingHookTests.mallorysCode(client)
            let first = try Self.reset(client, code, key: "k1")
            let made = try client.find(first.email)
            #expect(made.uid != ann)
            #expect(try Self.reset(client, code, key: "k1").email == first.email)
            #expect(try client.find(first.email) == made)
            expectRefusal("INVALID_OOB_CODE") { _ = try Self.reset(client, code, key: "other") }
        }
    }

    @Test func `Of two equal requests at once both get the same answer`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try EmailRecoveryTests.verifiedAccount(client, Self.email)
            for round in 0..<3 {
                try client.sendOob(.passwordReset, email: Self.email)
                let code = try EmailRecoveryTests.newestCode(client, .passwordReset)
                let emails = try await atOnce(2) { _ in
                    try Self.reset(try IdentityClient(server), code, key: Text("round-\(round)")).email
                }
                #expect(try emails.map { try $0.get() } == [Self.email, Self.email])
            }
        }
    }
}
