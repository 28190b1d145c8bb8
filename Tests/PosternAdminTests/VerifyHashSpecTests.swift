import Base
import Messages
import PosternAdmin
import Testing

extension MethodRecorder {
    /// A hash of another system, tried with its password.
    func callVerifyHashSpec(of admin: TenantAdmin) async throws {
        let trial = try await expect("Users/VerifyHashSpec") {
            let sha1 = PasswordHashSpec(algorithm: .digest(DigestSpec(function: .sha1, rounds: 1)))
            return try await admin.verifyHashSpec(
                sha1, password: Secret("password"), hash: Secret("5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"))
        }
        #expect(trial.matches)
    }
}
