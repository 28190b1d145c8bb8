import Base
import Messages

/// `--role`, `--scope-tenant` and `--all-tenants` of commands that make a credential.
extension Arguments {
    /// The role, which has to be given.
    func role(of roles: [(String, Role)]) throws(CommandError) -> Role {
        guard let role = try choice("role", of: roles) else {
            throw .usage("--role is missing", hint: "one of " + roles.map(\.0).joined(separator: ", "))
        }
        return role
    }

    /// The tenants, which have to be given unless the role is that of a project-admin.
    func scope(for role: Role) throws(CommandError) -> Scope {
        guard let scope = try givenScope(for: role) else {
            throw .usage("say which tenants it works for: --scope-tenant ID or --all-tenants")
        }
        return scope
    }

    /// Nil: the tenants are not given, and the role is not that of a project-admin.
    fileprivate func givenScope(for role: Role) throws(CommandError) -> Scope? {
        let tenant = text("scope-tenant")
        guard tenant == nil || !isSet("all-tenants") || role == .projectAdmin else {
            throw .usage("--scope-tenant and --all-tenants do not go together")
        }
        if let tenant { return Scope(tenants: .tenantID(tenant)) }
        return role == .projectAdmin || isSet("all-tenants") ? Scope(tenants: .all(true)) : nil
    }
}

extension Session {
    /// The tenants of a new credential. Without a flag it is for the tenant of the key that makes it. If that key is
    /// for all tenants, they have to be given.
    func scope(for role: Role) async throws -> Scope {
        if let scope = try arguments.givenScope(for: role) { return scope }
        guard let own = try await keysOwnTenant() else {
            // The server was asked, so this is no error of usage, after which nothing was sent.
            throw CommandError(
                "your key is for all tenants: say which ones the new one works for",
                hint: "--scope-tenant ID or --all-tenants")
        }
        return Scope(tenants: .tenantID(own))
    }
}
