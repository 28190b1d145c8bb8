import Base
import Identity
import Messages

/// postern.v1.Project/UpdateServiceAccount
enum ProjectUpdateServiceAccount: SlowMethod {
    private static let paths: Set<Text> = [
        "display_name", "role", "scope", "custom_tokens", "trusted_end_user_ip", "disabled",
        "quotas",
    ]

    static func handle(
        _ request: ProjectUpdateServiceAccountRequest, _ call: Call
    ) async throws -> ProjectUpdateServiceAccountResponse {
        let mask = try UpdateMask(request.updateMask, allowed: paths)
        var change = ServiceAccountChange()
        if mask.contains("display_name") { change.displayName = request.displayName }
        if mask.contains("role") { change.role = request.role }
        // A masked scope that is not there means no scope, which is refused.
        if mask.contains("scope") { change.scope = request.scope ?? Scope() }
        if mask.contains("custom_tokens") { change.signsCustomTokens = request.customTokens }
        if mask.contains("trusted_end_user_ip") { change.trustsEndUserIP = request.trustedEndUserIP }
        if mask.contains("quotas") { change.quotas = request.quotas ?? CallerQuotas() }
        if mask.contains("disabled") { change.isDisabled = request.disabled }
        let account = try await call.project.serviceAccounts.update(
            id: request.serviceAccountID, change, validateOnly: request.validateOnly, origin: call.origin)
        return ProjectUpdateServiceAccountResponse(serviceAccount: account)
    }
}
