import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Tenants/GetUsage
enum TenantsGetUsage: SlowMethod {
    static func handle(_ request: TenantsGetUsageRequest, _ call: Call) async throws -> TenantsGetUsageResponse {
        let settings = call.settings
        let signUps = await call.project.tenants.tenant(settings.tenantID).anonymousSignUpCount()
        return try call.project.store.read {
            try call.project.tenants.quotas.usage(of: settings, anonymousSignUps: signUps, in: $0)
        }
    }
}
