import Identity
import Messages
import Rules
import Store

/// postern.v1.Tenants/Get
enum TenantsGet: FastMethod {
    static func handle(
        _ request: TenantsGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TenantsGetResponse> {
        .message(TenantsGetResponse(tenant: call.settings.tenant))
    }
}
