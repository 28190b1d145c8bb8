import Base
import Identity
import Messages
import Rules

/// postern.v1.Project/UpdateServiceAccount
enum ProjectUpdateServiceAccount: SlowMethod {
    static func handle(
        _ request: ProjectUpdateServiceAccountRequest, _ call: Call
    ) async throws -> ProjectUpdateServiceAccountResponse {
        let mask = try UpdateMask<ProjectUpdateServiceAccountRequest>(request.updateMask?.paths)
        var change = ServiceAccountChange()
        for path in mask.paths {
            switch path {
            case .displayName: change.displayName = request.displayName
            case .role: change.role = request.role
            // If the mask names the scope but the request has none, the scope is empty, which is refused.
            case .scope: change.scope = request.scope ?? Scope()
            case .customTokens: change.signsCustomTokens = request.customTokens
            case .trustedEndUserIP: change.trustsEndUserIP = request.trustedEndUserIP
            case .quotas, .quotasMutationsPerSecond, .quotasWrittenBytesPerHour, .quotasSMSPerHour:
                change.quotas = CallerQuotasChange(request.quotas, mask, at: .quotas)
            case .disabled: change.isDisabled = request.disabled
            }
        }
        let account = try await call.project.serviceAccounts.update(
            id: request.serviceAccountID, change, by: call.caller, validateOnly: request.validateOnly,
            origin: call.origin)
        return ProjectUpdateServiceAccountResponse(serviceAccount: account)
    }
}
