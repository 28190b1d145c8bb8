public import Base
import Glibc
public import Journal
public import Store
public import Synchronization

/// The journal of a cluster in memory, with the faults of an engine: each node has a `MemoryJournal`, and they share
/// `Rows`.
public final class MemoryJournal: JournalEngine, @unchecked Sendable {
    // Unchecked: `isConnected` and `seen` belong to the writer's thread.

    /// The ways in which an engine may fail a question.
    public enum Fault: Sendable {
        /// The connection is lost before anything is done.
        case before
        /// The question is carried out, and the answer is lost.
        case after
    }

    public enum Question: Sendable { case heads, entries, append, turn }

    public struct Row: Sendable, Equatable {
        public let head: JournalHead
        public var bytes: [UInt8]
        /// Whether the engine's operator wrote the row, which then does not open.
        public var isForged = false

        public init(head: JournalHead, bytes: [UInt8]) { (self.head, self.bytes) = (head, bytes) }
    }

    public final class Rows: Sendable {
        fileprivate struct Table: Sendable {
            var rows: [Row]
            /// The node that has the turn.
            var owner: ObjectIdentifier?
        }

        fileprivate let table: Mutex<Table>
        fileprivate let clock: Clock?

        /// `clock` is the engine's.
        public init(beginning: JournalMark, clock: Clock? = nil) {
            self.clock = clock
            let head = JournalHead(
                mark: beginning, previousHash: JournalHash(.zero), batchID: BatchID(.zero))
            table = Mutex(Table(rows: [Row(head: head, bytes: [])]))
        }
        public var count: Int { table.withLock { $0.rows.count } }
        public func edit(_ body: (inout [Row]) -> Void) { table.withLock { body(&$0.rows) } }

        /// Runs `body` when no other node has the turn; with false if one keeps it for about ten seconds.
        fileprivate func withTable<Value: Sendable>(
            of node: ObjectIdentifier, _ body: (inout Table, _ isFree: Bool) -> Value
        ) -> Value {
            for _ in 0..<10_000 {
                let value: Value? = table.withLock { table in
                    table.owner == nil || table.owner == node ? body(&table, true) : nil
                }
                if let value { return value }
                usleep(1_000)
            }
            return table.withLock { body(&$0, false) }
        }

        fileprivate func endTurn(of node: ObjectIdentifier) {
            table.withLock { if $0.owner == node { $0.owner = nil } }
        }
    }

    private let rows: Rows
    private let fault: @Sendable (Question) -> Fault?
    private let tellsNews: Bool
    private let headsAtOnceMax: Int
    public let isAway = Atomic(false)
    private var isConnected = false
    private var seen = 0

    /// `fault` is asked at each question. Without `tellsNews`, the node learns what others wrote only when it asks.
    /// `headsAtOnceMax`: the heads that one question shows.
    public init(
        _ rows: Rows, tellsNews: Bool = true, headsAtOnceMax: Int = .max,
        fault: @escaping @Sendable (Question) -> Fault? = { _ in nil }
    ) {
        (self.rows, self.tellsNews, self.headsAtOnceMax, self.fault) = (rows, tellsNews, headsAtOnceMax, fault)
    }

    public var time: Timestamp? { rows.clock?.now() }

    public func use(clusterID: [UInt8]) {}

    public func connect() throws(JournalEngineError) {
        guard !isAway.load(ordering: .relaxed) else { throw .connectionLost("away") }
        isConnected = true
    }

    public func disconnect() {
        isConnected = false
        rows.endTurn(of: ObjectIdentifier(self))
    }

    private func ask<Value>(_ question: Question, _ body: () -> Value) throws(JournalEngineError) -> Value {
        guard isConnected, !isAway.load(ordering: .relaxed) else { throw .connectionLost("away") }
        let fault = fault(question)
        if fault == .before { throw .connectionLost("before") }
        let value = body()
        if fault == .after { throw .connectionLost("after") }
        return value
    }

    public func heads(
        from position: UInt64, while goesOn: () -> Bool
    ) throws(JournalEngineError) -> [JournalHead] {
        var heads: [JournalHead] = []
        while true {
            let first = heads.last.map { $0.mark.position + 1 } ?? position
            let next = try ask(.heads) {
                rows.table.withLock { table in
                    seen = table.rows.count
                    return Array(table.rows.map(\.head).filter { $0.mark.position >= first }.prefix(headsAtOnceMax))
                }
            }
            heads += next
            if next.count < headsAtOnceMax { return heads }
            guard goesOn() else { throw .connectionLost("the server stops") }
        }
    }

    public func entries(for heads: ArraySlice<JournalHead>) throws(JournalEngineError) -> [JournaledEntry] {
        let found = try ask(.entries) {
            rows.table.withLock { table in
                heads.prefix(3).compactMap { head in table.rows.first { $0.head == head } }
            }
        }
        if let forged = found.first(where: \.isForged) { throw .damaged(forged.head.mark.position) }
        return found.map { JournaledEntry(mark: $0.head.mark, bytes: $0.bytes) }
    }

    public func append(
        _ entry: [UInt8], id: BatchID, over mark: JournalMark
    ) throws(JournalEngineError) -> JournalMark? {
        try ask(.append) {
            let node = ObjectIdentifier(self)
            return rows.withTable(of: node) { table, isFree -> JournalMark? in
                // The append ends the node's turn, if it has one.
                if table.owner == node { table.owner = nil }
                guard isFree, table.rows.last?.head.mark == mark else { return nil }
                // This is not a good hash, but two entries differ by their names.
                let hash = JournalHash(SIMD4(id.words.x, id.words.y, mark.hash.words.x, mark.position))
                let new = JournalMark(position: mark.position + 1, hash: hash)
                table.rows.append(
                    Row(head: JournalHead(mark: new, previousHash: mark.hash, batchID: id), bytes: entry))
                return new
            }
        }
    }

    public func beginTurn() throws(JournalEngineError) -> Bool {
        try ask(.turn) {
            let node = ObjectIdentifier(self)
            return rows.withTable(of: node) { table, isFree in
                if isFree { table.owner = node }
                return isFree
            }
        }
    }

    public func endTurn() throws(JournalEngineError) { rows.endTurn(of: ObjectIdentifier(self)) }

    public func wait(for descriptor: Int32, until deadline: Instant?) throws(JournalEngineError) -> Bool {
        guard isConnected, !isAway.load(ordering: .relaxed) else { throw .connectionLost("away") }
        if tellsNews, rows.count > seen { return true }
        waitUntilReadable(descriptor, milliseconds: 2)
        return tellsNews && rows.count > seen
    }
}

private func waitUntilReadable(_ descriptor: Int32, milliseconds: Int32) {
    var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    _ = poll(&waited, 1, milliseconds)
}
