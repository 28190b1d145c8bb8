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
        let (type, email) = try await call.project.mailedCodes.apply(
            request.oobCode, settings: call.settings, origin: call.origin)
        return AccountsApplyOobCodeResponse(requestType: type, email: email)
    }
}
