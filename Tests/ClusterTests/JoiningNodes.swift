import Base
import Crypto
import Glibc
import Synchronization
import TestSupport

@testable import Cluster
@testable import Store

/// What tests of joining, snapshots and trimming need besides an engine.
extension LocalEngine {
    /// Small parts, so that a small store has many; a joining waits only 20 s for an engine that is gone.
    static let limits = {
        var limits = Limits()
        limits.journal.snapshotPartByteCount = 4_096
        limits.journal.joiningPatience = .seconds(20)
        return limits
    }()

    func connection(port: UInt16? = nil) throws -> PostgreSQLConnection {
        try address(port: port).connect(timeout: .seconds(10))
    }

    /// The number that the engine answers to the query.
    func number(_ sql: String, readOnly: Bool = false) throws -> Int {
        let connection =
            readOnly
            ? try PostgreSQLConnection(try address().url, [], timeout: .seconds(10)) : try connection()
        let rows = try connection.execute("SELECT (\(sql))::bigint")
        return Int(rows.integer(0, 0) ?? -1)
    }

    func snapshotTables(_ limits: Limits = LocalEngine.limits) throws -> SnapshotTables {
        let address = try address()
        return SnapshotTables(ClusterTables(try connection(), address), limits.journal)
    }

    func nodeTables(_ limits: Limits = LocalEngine.limits) throws -> NodeTables {
        let address = try address()
        return NodeTables(ClusterTables(try connection(), address), limits.journal)
    }

    func seal(of store: Store) throws -> JournalSeal {
        guard let place = try store.journalPlace() else { throw StoreError.journal(.notJoined) }
        return JournalSeal(clusterID: place.clusterID, masterKey: masterKey, random: .system)
    }

    func makeSnapshot(
        of store: Store, _ limits: Limits = LocalEngine.limits, while goesOn: () -> Bool = { true }
    ) throws -> MadeSnapshot? {
        try SnapshotMaker(address: try address(), seal: seal(of: store), random: .system, limits: limits)
            .make(of: store, while: goesOn)
    }

    func joining(
        _ directory: String, _ schema: String = "postern", port: UInt16? = nil, masterKey: MasterKey? = nil,
        _ limits: Limits = LocalEngine.limits
    ) throws -> Joining {
        mkdir(directory, 0o700)
        var configuration = StoreConfiguration(directory: directory, tables: [Self.values.declaration])
        configuration.mapByteCount = 256 << 20
        return Joining(
            configuration,
            as: try ClusterNode(of: directory, address: "127.0.0.1:1", version: "0", random: .system),
            at: try address(schema, port: port), masterKey: masterKey ?? self.masterKey,
            authenticator: TestAuthenticator(), eventHash: testEventHash, limits: limits)
    }

    @discardableResult
    func join(_ directory: String, port: UInt16? = nil, replacing: Bool = false) throws -> Joining.Joined {
        try joining(directory, port: port).run(replacing: replacing)
    }

    /// The node's store, which must agree with its witness.
    func node(_ directory: String, _ ended: Ended = Ended()) throws -> Store {
        try openTestStore(
            at: directory, tables: [Self.values.declaration],
            { configuration in
                configuration.journal = try? journal()
                configuration.durability = .synced
            }, onFatal: { error in ended.error.withLock { $0 = error } })
    }

    final class Ended: Sendable {
        let error = Mutex<StoreError?>(nil)
    }
}

extension Store {
    func fill(_ count: Int, from first: Int = 0) async throws {
        for number in first..<first + count {
            let key = [UInt8(number >> 8), UInt8(number & 255)]
            try await write { try $0.put(LocalEngine.values, key, [UInt8](repeating: UInt8(number & 255), count: 500)) }
        }
    }

    /// Every row of the store at the journal's end, except the rows about this store alone.
    func contents() async throws -> [UInt8: [[UInt8]: [UInt8]]] {
        try await write { _ in }
        return try read { transaction in
            var rows: [UInt8: [[UInt8]: [UInt8]]] = [:]
            for declaration in Schema.tables(with: [LocalEngine.values.declaration]) {
                let table = Table<[UInt8], [UInt8]>(id: declaration.id, name: "", owner: .nobody, purge: .noTenant)
                try transaction.scan(table) { row in
                    let key = try row.key
                    let isOwn = table.id == Schema.meta.id && key != EventLog.sequenceKey
                    if !isOwn { rows[table.id, default: [:]][key] = [UInt8](row.value) }
                    return true
                }
            }
            return rows
        }
    }
}

/// A test may block its thread for the moment that closing takes.
func close(_ stores: Store...) { for store in stores { store.close() } }
