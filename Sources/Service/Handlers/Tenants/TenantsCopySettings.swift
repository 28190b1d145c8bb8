import Identity
import Messages
import Rules

/// postern.v1.Tenants/CopySettings
enum TenantsCopySettings: SlowMethod {
    static func handle(
        _ request: TenantsCopySettingsRequest, _ call: Call
    ) async throws -> TenantsCopySettingsResponse {
        let tenant = try await call.project.tenants.copySettings(
            request.paths, from: request.templateTenantID, to: call.settings.tenantID,
            validateOnly: request.validateOnly, origin: call.origin)
        return TenantsCopySettingsResponse(tenant: tenant)
    }
}
