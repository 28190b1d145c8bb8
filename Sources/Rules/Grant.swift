public import Base
public import Messages

/// The rights of a credential: a role, over all tenants or one.
public struct Grant: Sendable {
    public let role: Role
    public let scope: Scope

    /// INVALID_ROLE, INVALID_SCOPE. `allowsNoRole`: for a credential that has other uses than calls.
    public init(role: Role, scope: Scope?, allowsNoRole: Bool = false) throws(Failure) {
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
    /// Whether a credential of this scope may act on a tenant; "" is the default pool.
    public func contains(tenantID: Text) -> Bool {
        switch tenants {
        case .all(let all): all
        case .tenantID(let own): own == tenantID
        case nil: false
        }
    }
}
