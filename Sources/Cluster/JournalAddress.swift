public import Base
internal import CPostgreSQL
import Glibc
import Store

/// The address of a cluster's journal: a database, and the schema in it that holds the cluster's tables.
public struct JournalAddress: Sendable {
    /// A connection string or URL of libpq. Several hosts may be in it; the one that takes writes is used.
    public let url: String
    public let schema: String
    /// Asked for each connection: the password may have been changed since the last one.
    private let password: (@Sendable () throws -> Secret)?
    /// Whether an engine with fsync=off is used all the same.
    public var acceptsForgetfulEngine = false
    /// The settings of this node; nil if nobody compares them.
    public var agreement: ClusterAgreement?

    public enum Problem: Error, CustomStringConvertible, Sendable {
        case malformed(String)
        case password
        case schema

        public var description: String {
            switch self {
            case .malformed(let reason): "not a connection string of PostgreSQL: \(reason)"
            case .password:
                "a password does not belong into the address, which others can see: name a file that holds it "
                    + "(--journal-password-file), or use PGPASSFILE"
            case .schema: "a schema's name has 1 to 48 of a-z, 0-9 and _, and begins with a letter"
            }
        }
    }

    /// `password` is called for each connection, on the thread that connects. While it throws, there is no connection.
    public init(
        _ url: String, schema: String = "postern", password: (@Sendable () throws -> Secret)? = nil
    ) throws(Problem) {
        let isName = schema.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "_")
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        guard isName, (1...48).contains(schema.utf8.count), schema.first?.isLetter == true else { throw .schema }
        if try Self.hasPassword(url) { throw .password }
        (self.url, self.schema, self.password) = (url, schema, password)
    }

    private static func hasPassword(_ url: String) throws(Problem) -> Bool {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(url, &message) else {
            defer { PQfreemem(message) }
            throw .malformed(message.map { String(cString: $0).split(separator: "\n").joined() } ?? "no memory")
        }
        defer { PQconninfoFree(options) }
        var option = options
        while let keyword = option.pointee.keyword {
            if strcmp(keyword, "password") == 0, option.pointee.val != nil { return true }
            option += 1
        }
        return false
    }

    var quotedSchema: String { "\"\(schema)\"" }
    var channel: String { "postern_\(schema)" }

    func connect(timeout: Duration) throws(JournalEngineError) -> PostgreSQLConnection {
        var parameters: PostgreSQLConnection.Parameters = [
            ("fallback_application_name", "postern"), ("client_encoding", "UTF8"), ("connect_timeout", "5"),
            ("target_session_attrs", "read-write"), ("keepalives_idle", "5"), ("keepalives_interval", "2"),
            ("keepalives_count", "3"), ("tcp_user_timeout", "10000"),
        ]
        if let password = try presentPassword() {
            parameters.append(("password", password.withBytes { String(decoding: $0, as: UTF8.self) }))
        }
        return try PostgreSQLConnection(url, parameters, timeout: timeout)
    }

    private func presentPassword() throws(JournalEngineError) -> Secret? {
        do {
            return try password?()
        } catch {
            // The file may be missing while somebody replaces it: the next try reads it again.
            throw .connectionLost("\(error)")
        }
    }
}
