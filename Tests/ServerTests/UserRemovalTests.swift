import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// What a deleted user leaves to the next user of its uid, table by table; tables that are declared later are covered,
/// too.
@Suite struct UserRemovalTests {
    private static let uid: Text = "a-user-that-goes"

    /// A key of the user, for each type of keys that has a uid.
    private static let keys: [String: [UInt8]] = [
        "UserKey": UserKey("", uid).bytes,
        "UserSessionKey": UserSessionKey("", uid, [7]).bytes,
        "UserTimeKey": UserTimeKey("", Timestamp(microseconds: 7), uid).bytes,
    ]

    /// The tables whose rows of a deleted user stay, and why.
    private static let staying: Set<String> = [
        // Verifiers refuse the user's tokens by these rows until the last token has expired.
        "revocations"
    ]

    private static func source(_ name: String) throws -> String {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let bytes = try #require(readFile("/\(root)/Sources/Identity/Tables/\(name).swift"))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The name of each table that Tables.swift declares, with the name of its type of keys.
    private static func keyTypes() throws -> [String: String] {
        var types: [String: String] = [:]
        for text in try source("Tables").split(separator: " = Table<").dropFirst() {
            let parts = text.split(separator: "name: \"")
            guard parts.count > 1 else { continue }
            types[String(parts[1].prefix { $0 != "\"" })] = String(text.prefix { $0 != "," })
        }
        return types
    }

    /// A table by its id alone.
    private static func plain(_ declaration: TableDeclaration) -> Table<[UInt8], [UInt8]> {
        Table(id: declaration.id, name: declaration.name, owner: declaration.owner, purge: declaration.purge)
    }

    /// The tables with a row that has the uid in its key or in its record.
    private static func tablesNamingTheUser(_ server: TestServer) throws -> Set<String> {
        let wanted = uid.bytes
        return try server.project.store.read { transaction in
            var names: Set<String> = []
            for table in Tables.all {
                try transaction.scan(plain(table)) { row in
                    if try row.key.contains(wanted) || [UInt8](row.value).contains(wanted) {
                        names.insert(table.name.description)
                    }
                    return true
                }
            }
            return names
        }
    }

    @Test func `Each type of keys that has a uid is known here, and so are the keys of each table`() throws {
        for text in try Self.source("Keys").split(separator: "\npublic struct ").dropFirst() {
            guard text.contains("var uid: Text") else { continue }
            let type = String(text.prefix { $0 != ":" })
            #expect(Self.keys[type] != nil, "\(type): add a key of the user to `keys`")
        }
        let read = Set(try Self.keyTypes().keys)
        #expect(Set(Tables.all.map(\.name.description)).subtracting(read) == ["signing_keys"])
    }

    @Test func `A deleted user leaves no row in any table whose keys name users`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(
                    uid: Self.uid, email: "ann@example.com", password: Secret([UInt8]("correct horse".utf8))))
            _ = try client.signIn("ann@example.com")

            // The server has made rows in some tables. The others get a row with an empty record, which is a message
            // of any type.
            let types = try Self.keyTypes()
            let made = try Self.tablesNamingTheUser(server)
            let ofUsers = Tables.all.filter { Self.keys[types[$0.name.description] ?? ""] != nil }
            #expect(made.isSuperset(of: ["users", "user_by_email", "sessions", "session_by_user", "user_by_creation"]))
            try await server.project.store.write { transaction in
                for table in ofUsers where !made.contains(table.name.description) {
                    guard let key = Self.keys[types[table.name.description] ?? ""] else { continue }
                    try transaction.put(Self.plain(table), key, [])
                }
            }
            let before = try Self.tablesNamingTheUser(server)
            #expect(before.isSuperset(of: ofUsers.map(\.name.description)))

            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: Self.uid))
            for name in try Self.tablesNamingTheUser(server).subtracting(Self.staying) {
                Issue.record("rows of a deleted user are left in \(name): see WriteTransaction.remove")
            }
        }
    }
}
