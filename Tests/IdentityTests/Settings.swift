import Base
import Identity
import Messages
import TestSupport

/// Settings as a tenant would publish them.
func tenantSettings(tenantID: Text = "acme", _ change: (inout Messages.Tenant) -> Void = { _ in }) -> TenantSettings {
    var tenant = TenantSettings.defaults(tenantID: tenantID, now: .zero)
    change(&tenant)
    return TenantSettings(StoredTenant(tenant: tenant, secret: [UInt8](repeating: 5, count: 32)))
}

/// The failure that `body` throws, nil if it throws nothing.
func failure(_ body: () throws -> Void) -> Failure? {
    do {
        try body()
        return nil
    } catch {
        return error as? Failure ?? Failure(.unknown, "NO_FAILURE", "\(error)")
    }
}

func reason(_ body: () throws -> Void) -> String? { failure(body)?.reason }

func utf8(_ text: String) -> [UInt8] { [UInt8](text.utf8) }
