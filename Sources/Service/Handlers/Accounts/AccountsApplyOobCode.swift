import Base
import Identity
import Messages
import Rules

/// postern.v1.Accounts/ApplyOobCode
enum AccountsApplyOobCode: SlowMethod {
    static func handle(
        _ request: AccountsApplyOobCodeRequest, _ call: Call
    ) async throws -> AccountsApplyOobCodeResponse {
        guard !request.oobCode.isEmpty else { throw Failure.missingOobCode }
        let codes = call.project.mailedCodes
        return try await codes.answeringRepeats(of: call.origin) {
            try await codes.apply(request.oobCode, settings: call.settings, origin: call.origin)
        }
    }
}
