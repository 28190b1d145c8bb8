import Identity
import Messages
import Rules

/// postern.v1.Tenants/CopySettings
enum TenantsCopySettings: SlowMethod {
    static func handle(
        _ request: TenantsCopySettingsRequest, _ call: Call
    ) async throws -> TenantsCopySettingsResponse {
        let template = try call.project.tenants.template(request.templateTenantID)
        let change = try TenantTemplate.change(from: template, paths: request.paths)
        let settings = try await call.project.tenants.tenant(call.settings.tenantID).update(
            change, validateOnly: request.validateOnly, origin: call.origin)
        return TenantsCopySettingsResponse(tenant: settings.tenant)
    }
}
