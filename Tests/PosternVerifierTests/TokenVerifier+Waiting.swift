import Base
import PosternVerifier
import TestSupport

extension TokenVerifier {
    /// The reason why the verifier refuses the token now; empty for a token that it accepts.
    func reason(_ token: Text) -> String {
        do throws(Failure) {
            _ = try verifyNow(token.string)
            return ""
        } catch {
            return error.reason
        }
    }

    /// Waits until the verifier says `reason`. The feed takes milliseconds, but a loaded machine may need longer.
    func becomes(_ reason: String, _ token: Text) async throws {
        try await until("the verifier says \(reason), not \(self.reason(token))") { self.reason(token) == reason }
    }
}
