import Base
import JSON
import Messages
import PosternClient

/// A tenant of a server, as a file names it that says how far an import or an export came. What was done in one tenant
/// of one server was not done in another, and what was done may be undone by a restore.
struct ServedTenant: Equatable {
    let server: String
    /// Empty: the default pool. It is never "the tenant of the key", because another key may go on with the file.
    let tenantID: Text
    /// The history of the server's store (`ProjectServerInfoResponse`). Empty: an older server does not tell it, or an
    /// earlier version wrote the file.
    var historyID = Text.empty

    /// The words for the tenant.
    var name: String { tenantID.isEmpty ? "the default pool" : "tenant \(tenantID)" }

    /// The members that name the tenant in a file. Null is the default pool: earlier versions wrote "" also for the
    /// tenant of the key.
    var members: [JSONValue.Member] {
        var members: [JSONValue.Member] = [
            .init("server", .string(Text(server))),
            .init("tenant", tenantID.isEmpty ? .null : .string(tenantID)),
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

extension Session {
    /// The tenant of a key that is for one tenant, as the server says. Nil: the key is for all tenants.
    func keysOwnTenant() async throws -> Text? {
        let client = ProjectClient(channel: try channel())
        let answer = try await client.whoAmI(.init(), options: callOptions(withKey: false))
        guard case .tenantID(let own)? = answer.scope?.tenants else { return nil }
        return own
    }
}

extension ServedTenant {
    /// The tenant that a command is about. If the command names none, the server is asked whose tenant the key is of.
    init(of session: Session) async throws {
        var tenantID = try session.tenantID()
        if tenantID.isEmpty { tenantID = try await session.keysOwnTenant() ?? .empty }
        self.init(server: try session.destination().server, tenantID: tenantID)
    }

    /// The same, with the history of the store, for which the server is asked.
    init(withHistoryOf session: Session) async throws {
        try await self.init(of: session)
        let client = ProjectClient(channel: try session.channel())
        let info = try await client.serverInfo(.init(), options: session.callOptions(withKey: false))
        historyID = info.historyID
    }

    /// Nil: the file does not say which tenant it is of, because an earlier version wrote the file.
    init?(in json: JSONValue) {
        guard let server = json["server"]?.string, let tenant = json["tenant"] else { return nil }
        let tenantID: Text
        if tenant.isNull {
            tenantID = .empty
        } else {
            guard let named = tenant.text, !named.isEmpty else { return nil }
            tenantID = named
        }
        self.init(server: server, tenantID: tenantID, historyID: json["history"]?.text ?? .empty)
    }
}
