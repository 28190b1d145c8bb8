import Base
import PosternVerifier
import Testing

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
        for _ in 0..<2_000 {
            if self.reason(token) == reason { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        Issue.record("the verifier says \(self.reason(token)), not \(reason)")
    }
}
