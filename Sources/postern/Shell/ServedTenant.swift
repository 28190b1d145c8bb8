import Base
import JSON

/// A tenant of a server, as a file names it that says how far an import or an export came. What was done in one tenant
/// of one server was not done in another.
struct ServedTenant: Equatable {
    let server: String
    /// Empty: no tenant was named. The server takes the key's own tenant, which this program does not know.
    let tenantID: Text

    /// The words for the tenant.
    var name: String { tenantID.isEmpty ? "the default pool, or the key's own tenant" : "tenant \(tenantID)" }

    /// The members that name the tenant in a file.
    var members: [JSONValue.Member] {
        [.init("server", .string(Text(server))), .init("tenant", .string(tenantID))]
    }

    /// Refuses another tenant or server than this one, of which the file at `path` is. `work`: "an import into".
    func check(is wanted: ServedTenant, path: String, work: String) throws(CommandError) {
        guard Destination.isSame(server, wanted.server), tenantID == wanted.tenantID else {
            throw .usage("\(path): is of \(work) \(name) on \(server); name another file")
        }
    }
}

extension ServedTenant {
    /// The tenant that a command is about.
    init(of session: Session) throws(CommandError) {
        self.init(server: try session.destination().server, tenantID: try session.tenantID())
    }

    /// Nil: the file does not name it, because an earlier version wrote the file.
    init?(in json: JSONValue) {
        guard let server = json["server"]?.string, let tenantID = json["tenant"]?.text else { return nil }
        self.init(server: server, tenantID: tenantID)
    }
}
