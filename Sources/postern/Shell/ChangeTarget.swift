/// The tenant that a command changes, as the line that names its server tells it to people.
enum ChangeTarget: Sendable, Equatable {
    /// The tenant of --tenant, of the environment or of a context.
    case usualTenant
    /// What an operand, --where or a request names: `tenant acme`, `every tenant where name=Shop`.
    case named(String)
    /// The project as a whole. --tenant means nothing.
    case project
}
