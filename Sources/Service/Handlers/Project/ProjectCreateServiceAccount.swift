import Identity
import Messages
import Rules

/// postern.v1.Project/CreateServiceAccount
enum ProjectCreateServiceAccount: SlowMethod {
    static func handle(
        _ request: ProjectCreateServiceAccountRequest, _ call: Call
    ) async throws -> ProjectCreateServiceAccountResponse {
        var change = ServiceAccountChange()
        change.displayName = request.displayName
        change.role = request.role
        change.scope = request.scope
        change.signsCustomTokens = request.customTokens
        change.trustsEndUserIP = request.trustedEndUserIP
        change.quotas = request.quotas.map { CallerQuotasChange(all: $0) }
        let account = try await call.project.serviceAccounts.create(
            id: request.serviceAccountID, change, by: call.caller, validateOnly: request.validateOnly,
            origin: call.origin)
        return ProjectCreateServiceAccountResponse(serviceAccount: account)
    }
}
