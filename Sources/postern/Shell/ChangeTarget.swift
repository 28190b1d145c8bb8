import Base

/// The tenant that a command changes, as the line that names its server tells it to people.
enum ChangeTarget: Sendable, Equatable {
    /// The tenant of --tenant, of the environment or of a context.
    case usualTenant
    /// What an operand, --where or a request names: `tenant acme`, `every tenant where name=Shop`.
    case named(String)
    /// The project as a whole. --tenant means nothing.
    case project

    /// The tenant of a request with this `tenant_id`. Without one, the request is about the tenant of a key that is for
    /// one tenant, and otherwise about the default pool. Only the server knows the key's tenant.
    static func title(_ tenantID: Text) -> String {
        tenantID.isEmpty ? "the default pool or the key's own tenant" : "tenant \(tenantID)"
    }
}
