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
        let tenant = text("scope-tenant")
        guard role == .projectAdmin || (tenant != nil) != isSet("all-tenants") else {
            throw .usage("say which tenants it works for: --scope-tenant ID or --all-tenants")
        }
        return Scope(tenants: tenant.map { .tenantID($0) } ?? .all(true))
    }
}
