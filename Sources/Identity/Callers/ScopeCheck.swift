import Base
import Messages
import Store

extension ReadTransaction {
    /// TENANT_NOT_FOUND for the scope of a tenant that does not exist.
    func checkExists(_ scope: Scope?) throws {
        if case .tenantID(let tenantID) = scope?.tenants { _ = try liveTenant(tenantID) }
    }
}
