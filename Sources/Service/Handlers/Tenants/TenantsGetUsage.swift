import Base
import Identity
import Messages
import Store

/// postern.v1.Tenants/GetUsage
enum TenantsGetUsage: SlowMethod {
    static func handle(_ request: TenantsGetUsageRequest, _ call: Call) async throws -> TenantsGetUsageResponse {
        let settings = call.settings
        let signUps = await call.project.tenants.tenant(settings).anonymousSignUpCount()
        return try call.project.store.read {
            try call.project.tenants.quotas.usage(of: settings, anonymousSignUps: signUps, in: $0)
        }
    }
}
