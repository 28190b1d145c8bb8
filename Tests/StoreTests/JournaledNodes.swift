import Base
import Journal
import Synchronization
import TestSupport

@testable import Store

/// Stores that share their writes through a journal in memory, which has faults.
final class JournaledNodes: Sendable {
    struct Node: Sendable {
        let store: Store
        let journal: MemoryJournal
        let failure: Failure
    }

    /// The error that ended a node; nil while the node goes on.
    final class Failure: Sendable {
        private let stored = Mutex<StoreError?>(nil)
        var error: StoreError? {
            get { stored.withLock { $0 } }
            set { stored.withLock { $0 = newValue } }
        }
    }

    static let values = Table<[UInt8], [UInt8]>(
        id: 30, name: "values", owner: .nobody, purge: .noTenant, news: .ofRow)
    static let owned = Table<UserKey, [UInt8]>(id: 31, name: "owned", owner: .keyPrefix, purge: .withTenant)
    static let tables = testTables + [values.declaration, owned.declaration]
    static let beginning = JournalMark(position: 0, hash: JournalHash(SIMD4(7, 7, 7, 7)))

    let rows = MemoryJournal.Rows(beginning: JournaledNodes.beginning)
    let nodes: [Node]

    init(
        _ count: Int, in directory: String, _ configure: (inout StoreConfiguration) -> Void,
        fault: @escaping @Sendable (MemoryJournal.Question) -> MemoryJournal.Fault?
    ) throws {
        let rows = rows
        nodes = try (0..<count).map { number in
            let path = "\(directory)/\(number)"
            try Self.join(path)
            let journal = MemoryJournal(rows, fault: fault)
            let failure = Failure()
            let store = try openTestStore(
                at: path, tables: Self.tables,
                { configuration in
                    configuration.journal = journal
                    configuration.durability = .relaxed
                    configuration.limits.journal.patience = .milliseconds(50)
                    configure(&configuration)
                }, onFatal: { failure.error = $0 })
            return Node(store: store, journal: journal, failure: failure)
        }
    }

    /// Makes a store as a node gets it from a snapshot of the cluster's beginning.
    static func join(_ directory: String) throws {
        let store = try openTestStore(at: directory, tables: tables)
        defer { store.close() }
        let place = JournalPlace(clusterID: [UInt8](repeating: 1, count: 16), mark: beginning)
        try store.writeBlocking { try $0.setJournalPlace(Optional(place)) }
    }

    fileprivate func close() { for node in nodes { node.store.close() } }

    /// A write without changes shows that its node is at the journal's end.
    func catchUp() async throws { for node in nodes { try await node.store.write { _ in } } }

    /// Every row of the node's store, except the rows about this store alone.
    func contents(_ node: Int) throws -> [UInt8: [[UInt8]: [UInt8]]] {
        try nodes[node].store.read { transaction in
            var rows: [UInt8: [[UInt8]: [UInt8]]] = [:]
            for declaration in Schema.tables(with: Self.tables) {
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

func withJournaledNodes<Result>(
    _ count: Int, _ configure: (inout StoreConfiguration) -> Void = { _ in },
    fault: @escaping @Sendable (MemoryJournal.Question) -> MemoryJournal.Fault? = { _ in nil },
    _ body: (JournaledNodes) async throws -> Result
) async throws -> Result {
    try await withTemporaryDirectory { directory in
        let nodes = try JournaledNodes(count, in: directory, configure, fault: fault)
        defer { close(nodes) }
        return try await body(nodes)
    }
}

/// A test may block its thread for the moment that closing takes.
private func close(_ nodes: JournaledNodes) { nodes.close() }
