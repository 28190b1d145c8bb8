import Base
import Messages
import Store

/// What a credential may do: a role, over all tenants or one.
struct Grant {
    let role: Role
    let scope: Scope

    /// INVALID_ROLE, INVALID_SCOPE. `allowsNoRole`: for a credential that is not only for calling.
    init(role: Role, scope: Scope?, allowsNoRole: Bool = false) throws(Failure) {
        let roles: [Role] = [.verifier, .app, .tenantAdmin, .projectAdmin] + (allowsNoRole ? [.unspecified] : [])
        guard roles.contains(role) else {
            throw .invalid(.invalidRole, field: "role", "must be verifier, app, tenant-admin or project-admin")
        }
        guard let tenants = scope?.tenants, tenants != .all(false) else {
            throw .invalid(.invalidScope, field: "scope", "must be all tenants or one tenant")
        }
        guard role != .projectAdmin || tenants == .all(true) else {
            throw .invalid(.invalidScope, field: "scope", "a project admin's scope is all tenants")
        }
        self.role = role
        self.scope = Scope(tenants: tenants)
    }
}

extension Scope {
    /// Whether a credential of this scope may be about a tenant; "" is the default pool.
    func contains(tenantID: Text) -> Bool {
        switch tenants {
        case .all(let all): all
        case .tenantID(let own): own == tenantID
        case nil: false
        }
    }
}

extension ReadTransaction {
    /// TENANT_NOT_FOUND for the scope of a tenant that does not exist.
    func checkExists(_ scope: Scope?) throws {
        if case .tenantID(let tenantID) = scope?.tenants { _ = try liveTenant(tenantID) }
    }
}
