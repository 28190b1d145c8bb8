import Base
import Messages
import TestSupport
import Testing

/// The tenant's password policy.
extension AccountsTests {
    @Test(arguments: [
        ("Correct-horse-1", ""), ("correct-horse-1", "uppercase"), ("CORRECT-HORSE-1", "lowercase"),
        ("Correct-horse", "digit"), ("Correcthorse1", "symbol"), ("Aa-1xyz", "min_length"),
        ("aaaaaa", "min_length,uppercase,digit,symbol"),
        ("Äpfel-Über-1", "uppercase"),
    ])
    func aPasswordMeetsTheTenantsPolicy(_ password: Text, _ unmet: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let old = try client.signUp("old@example.com", password: "aaaaaa")
            try Self.setPolicy(client, force: false)
            let byChange = failure {
                _ = try Self.update(client, old.tokens!.idToken, ["password"]) { $0.password = Secret(password.bytes) }
            }
            try client.sendOob(.passwordReset, email: "old@example.com")
            let code = try #require(try client.mails().first).code
            let refusals = [Self.signUpFailure(client, password), byChange, Self.resetFailure(client, code, password)]
            for refused in refusals {
                #expect(refused.reason == (unmet.isEmpty ? "" : "PASSWORD_DOES_NOT_MEET_REQUIREMENTS"))
                #expect(refused.metadata("unmet") ?? "" == unmet)
            }
        }
    }

    @Test func anOldPasswordSignsInUnlessTheUpgradeIsForced() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("old@example.com", password: "aaaaaa")
            try Self.setPolicy(client, force: false)
            _ = try client.signIn("old@example.com", password: "aaaaaa")
            try Self.setPolicy(client, force: true)
            let refused = failure { _ = try client.signIn("old@example.com", password: "aaaaaa") }
            #expect(refused.reason == "PASSWORD_DOES_NOT_MEET_REQUIREMENTS")
            // Only a caller who knows the password learns that it is too weak.
            let wrong = failure { _ = try client.signIn("old@example.com", password: "bbbbbb") }
            #expect(wrong.reason == "INVALID_LOGIN_CREDENTIALS")
        }
    }

    private static func setPolicy(_ client: IdentityClient, force: Bool) throws {
        try client.setTenant(["password_policy"]) {
            $0.passwordPolicy = PasswordPolicy(
                minLength: 8, requireLowercase: true, requireUppercase: true, requireDigit: true, requireSymbol: true,
                forceUpgradeOnSignIn: force)
        }
    }

    private static func signUpFailure(_ client: IdentityClient, _ password: Text) -> Failure {
        failure { _ = try client.signUp("new@example.com", password: password) }
    }

    private static func resetFailure(_ client: IdentityClient, _ code: Secret, _ password: Text) -> Failure {
        failure { _ = try client.resetPassword(code, password) }
    }
}
