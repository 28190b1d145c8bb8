import Base
import JSON
import Messages
import PosternClient

/// A tenant of a server, as a file names it that says how far an import or an export came. What was done in one tenant
/// of one server was not done in another, and what was done may be undone by a restore.
struct ServedTenant: Equatable {
    let server: String
    /// Empty: no tenant was named. The server takes the key's own tenant, which this program does not know.
    let tenantID: Text
    /// The history of the server's store (`ProjectServerInfoResponse`). Empty: an older server does not tell it, or an
    /// earlier version wrote the file.
    var historyID = Text.empty

    /// The words for the tenant.
    var name: String { tenantID.isEmpty ? "the default pool, or the key's own tenant" : "tenant \(tenantID)" }

    /// The members that name the tenant in a file.
    var members: [JSONValue.Member] {
        var members: [JSONValue.Member] = [
            .init("server", .string(Text(server))), .init("tenant", .string(tenantID)),
        ]
        if !historyID.isEmpty { members.append(.init("history", .string(historyID))) }
        return members
    }

    /// Refuses another tenant or server than this one, of which the file at `path` is, and another history of the
    /// server's store. `work`: "an import into"; `anew`: how to begin anew.
    func check(is wanted: ServedTenant, path: String, work: String, anew: String) throws(CommandError) {
        guard Destination.isSame(server, wanted.server), tenantID == wanted.tenantID else {
            throw .usage("\(path): is of \(work) \(name) on \(server); name another file")
        }
        guard historyID.isEmpty || wanted.historyID.isEmpty || historyID == wanted.historyID else {
            throw .usage(
                "\(path): is of \(work) \(name) before the server's store changed: a backup was restored, or it became "
                    + "another store; what the file tells may not be in it", hint: anew)
        }
    }
}

extension ServedTenant {
    /// The tenant that a command is about.
    init(of session: Session) throws(CommandError) {
        self.init(server: try session.destination().server, tenantID: try session.tenantID())
    }

    /// The same, with the history of the store, for which the server is asked.
    init(askingServerOf session: Session) async throws {
        try self.init(of: session)
        let client = ProjectClient(channel: try session.channel())
        let info = try await client.serverInfo(.init(), options: session.callOptions(withKey: false))
        historyID = info.historyID
    }

    /// Nil: the file does not name it, because an earlier version wrote the file.
    init?(in json: JSONValue) {
        guard let server = json["server"]?.string, let tenantID = json["tenant"]?.text else { return nil }
        self.init(server: server, tenantID: tenantID, historyID: json["history"]?.text ?? .empty)
    }
}
