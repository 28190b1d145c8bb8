public import Base
public import Crypto
public import Journal
public import Store

/// The journal of a cluster in PostgreSQL, or in an engine with its wire protocol: one table, whose primary key orders
/// all writes.
///
/// The SQL is plain: no functions or triggers, and no locks except for a turn. Entries are sealed (`JournalSeal`). The
/// writer's thread only.
public final class PostgreSQLJournal: JournalEngine, @unchecked Sendable {
    // Unchecked: the variables belong to the writer's thread.
    private let address: JournalAddress
    private let makeSeal: @Sendable (_ clusterID: [UInt8]) -> JournalSeal
    private let limits: Limits
    private var seal: JournalSeal?
    private var connection: PostgreSQLConnection?
    /// The bodies of entries, by position, that were read and not opened yet.
    private var bodiesRead: [UInt64: [UInt8]] = [:]
    private var hasNotifications = false
    private var patience: ReadPatience
    /// Whether a transaction is open that holds the table's lock.
    private var hasTurn = false
    public private(set) var time: Timestamp?

    /// If entries are small, this many come with their heads: as many as a node that follows closely reads at once.
    private static let bodiesWithHeadsMax = 16
    private static let bodyWithHeadByteCountMax = 64 * 1024
    /// Microseconds since 1970 by the engine's clock.
    private static let timeColumn = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    private static let bodiesAtOnceMax = 256
    private static let bodiesAtOnceByteCountMax = 4 << 20

    public init(_ address: JournalAddress, masterKey: MasterKey, random: RandomSource, limits: Limits) {
        (self.address, self.limits) = (address, limits)
        patience = ReadPatience(limits.journal)
        makeSeal = { JournalSeal(clusterID: $0, masterKey: masterKey, random: random) }
    }

    public func use(clusterID: [UInt8]) { seal = makeSeal(clusterID) }

    private var table: String { "\(address.quotedSchema).postern_journal" }

    private var knownSeal: JournalSeal {
        // Proof: the writer names the cluster first of all.
        guard let seal else { preconditionFailure("a journal of no cluster") }
        return seal
    }

    // MARK: Connecting

    public func connect() throws(JournalEngineError) {
        disconnect()
        let new = try address.connect(to: knownSeal, timeout: limits.journal.answerTimeout)
        try new.prepare(
            "heads",
            """
            SELECT position, hash, previous_hash, batch_id,
                CASE WHEN position <= $1::bigint + \(Self.bodiesWithHeadsMax) AND position > $1::bigint
                    AND octet_length(body) <= \(Self.bodyWithHeadByteCountMax) THEN body END,
                \(Self.timeColumn)
            FROM \(table) WHERE position >= $1::bigint ORDER BY position LIMIT \(limits.journal.headsAtOnceMax)
            """)
        try new.prepare(
            "entries",
            """
            SELECT position, body FROM (
                SELECT position, body,
                    sum(octet_length(body)) OVER (ORDER BY position) - octet_length(body) AS before
                FROM \(table) WHERE position >= $1::bigint AND position <= $2::bigint) AS entries
            WHERE before < \(Self.bodiesAtOnceByteCountMax) ORDER BY position
            """)
        let insert = """
            INSERT INTO \(table) (position, hash, previous_hash, batch_id, body)
            SELECT $1::bigint, $2::bytea, $3::bytea, $4::bytea, $5::bytea
            WHERE EXISTS (SELECT 1 FROM \(table) WHERE position = $1::bigint - 1 AND hash = $3::bytea)
            ON CONFLICT DO NOTHING RETURNING \(Self.timeColumn)
            """
        hasNotifications = (try? new.execute("LISTEN \(address.channel)")) != nil
        let notify = "WITH appended(time) AS (\(insert)) SELECT time, pg_notify('\(address.channel)', '') FROM appended"
        try new.prepare("append", hasNotifications ? notify : insert)
        connection = new
    }

    public func disconnect() {
        (time, connection, hasTurn) = (nil, nil, false)
        bodiesRead = [:]
    }

    private func connected() throws(JournalEngineError) -> PostgreSQLConnection {
        guard let connection else { throw .connectionLost("there is no connection") }
        return connection
    }

    // MARK: Reading

    public func heads(
        from position: UInt64, while goesOn: () -> Bool
    ) throws(JournalEngineError) -> [JournalHead] {
        time = nil
        let (most, atOnce) = (limits.journal.headsMax + 1, limits.journal.headsAtOnceMax)
        var heads = try readHeads(from: position)
        var isMore = heads.count == atOnce
        // A node far behind would wait too long for the answer to a single question.
        while isMore, heads.count <= most, let last = heads.last {
            guard goesOn() else { throw .connectionLost("the server stops") }
            let next = try readHeads(from: last.mark.position)
            guard next.first == last else { throw .connectionLost("entries are gone that were read a moment ago") }
            heads += next.dropFirst()
            isMore = next.count == atOnce
        }
        // These are the row at the node's own place, and too many rows above it: the last row may not be the end.
        // Without its own row, the node has to join again.
        if heads.count > most { heads.removeFirst() }
        return heads
    }

    /// A question that changes nothing. All writes of the node wait for its answer.
    private func read(_ statement: String, _ parameters: [[UInt8]?]) throws(JournalEngineError) -> PostgreSQLResult {
        let (connection, began) = (try connected(), Instant.now)
        defer { patience.ended(after: .nanoseconds(Instant.now.nanoseconds(since: began))) }
        return try connection.execute(statement, with: parameters, silenceMax: patience.silenceMax)
    }

    /// The first heads from `position` on, and the bodies of some.
    private func readHeads(from position: UInt64) throws(JournalEngineError) -> [JournalHead] {
        let result = try read("heads", [position.bigEndianBytes])
        var heads: [JournalHead] = []
        heads.reserveCapacity(result.rowCount)
        bodiesRead = [:]
        for row in 0..<result.rowCount {
            guard let position = result.integer(row, 0).flatMap({ UInt64(exactly: $0) }),
                let hash = result.bytes(row, 1).flatMap({ JournalHash(bytes: $0) }),
                let previousHash = result.bytes(row, 2).flatMap({ JournalHash(bytes: $0) }),
                let id = result.bytes(row, 3).flatMap({ BatchID(bytes: $0) })
            else { throw .damaged(heads.last.map { $0.mark.position + 1 } ?? position) }
            if let body = result.bytes(row, 4) { bodiesRead[position] = [UInt8](body) }
            heads.append(
                JournalHead(
                    mark: JournalMark(position: position, hash: hash), previousHash: previousHash, batchID: id))
        }
        if result.rowCount > 0 { noteTime(result, row: result.rowCount - 1, column: 5) }
        return heads
    }

    public func entries(
        for heads: ArraySlice<JournalHead>
    ) throws(JournalEngineError) -> [JournaledEntry] {
        let known = try opened(heads)
        if !known.isEmpty { return known }
        let asked = heads.prefix(Self.bodiesAtOnceMax)
        guard let first = asked.first?.mark.position, let last = asked.last?.mark.position else { return [] }
        let result = try read("entries", [first.bigEndianBytes, last.bigEndianBytes])
        bodiesRead = [:]
        for row in 0..<result.rowCount {
            guard let position = result.integer(row, 0).flatMap({ UInt64(exactly: $0) }),
                let body = result.bytes(row, 1)
            else { throw .damaged(first) }
            bodiesRead[position] = [UInt8](body)
        }
        let entries = try opened(asked)
        // The entry was there when its head was read, and the newest entries are never trimmed.
        guard !entries.isEmpty else { throw .connectionLost("entry \(first) is gone since its head was read") }
        return entries
    }

    /// The first entries, as far as their bodies were read.
    private func opened(_ heads: ArraySlice<JournalHead>) throws(JournalEngineError) -> [JournaledEntry] {
        var entries: [JournaledEntry] = []
        for head in heads {
            guard let body = bodiesRead.removeValue(forKey: head.mark.position) else { break }
            let bytes = try body.span.withUnsafeBytes { body throws(JournalEngineError) in
                try knownSeal.open(body, of: head)
            }
            entries.append(JournaledEntry(mark: head.mark, bytes: bytes))
        }
        return entries
    }

    // MARK: Appending

    public func append(
        _ entry: [UInt8], id: BatchID, over mark: JournalMark
    ) throws(JournalEngineError) -> JournalMark? {
        let row: (head: JournalHead, body: [UInt8])
        do throws(CryptoError) {
            row = try knownSeal.seal(entry, id: id, over: mark)
        } catch {
            throw .unusable("an entry of \(entry.count) bytes cannot be sealed")
        }
        let head = row.head
        time = nil
        let result = try connected().execute(
            "append",
            with: [
                head.mark.position.bigEndianBytes, head.mark.hash.bytes, head.previousHash.bytes, id.bytes, row.body,
            ])
        if hasTurn {
            hasTurn = false
            // The entry is in the journal, and the turn is over, only when the transaction is committed.
            try connected().commit()
        }
        guard result.rowCount == 1 else { return nil }
        noteTime(result, row: 0, column: 0)
        return head.mark
    }

    private func noteTime(_ result: PostgreSQLResult, row: Int, column: Int) {
        time = result.integer(row, column).map { Timestamp(microseconds: $0) }
    }

    // MARK: Turns

    /// Locks the table against the appends of other nodes, in a transaction that ends with this node's next append. An
    /// append takes a lock that conflicts with this one by itself, so it is the same statement as ever, and older nodes
    /// wait as well. PostgreSQL gives locks in the order in which they were asked for.
    public func beginTurn() throws(JournalEngineError) -> Bool {
        let (connection, limits) = (try connected(), limits.journal)
        let (silence, wait) = (limits.turnSilenceMax.microseconds / 1_000, limits.turnWaitMax.microseconds / 1_000)
        hasTurn = try connection.begin([
            // The first ends the turn of a node that stands still. The second ends that of a node that went away in the
            // middle of an answer, while the engine waits to send the rest.
            "SET LOCAL idle_in_transaction_session_timeout = \(silence)",
            "SET LOCAL tcp_user_timeout = \(2 * silence)",
            "SET LOCAL lock_timeout = \(wait)",
            "LOCK TABLE \(table) IN SHARE ROW EXCLUSIVE MODE",
            // The append may wait as long as any other.
            "SET LOCAL lock_timeout = \(connection.lockTimeoutMilliseconds)",
        ])
        return hasTurn
    }

    public func endTurn() throws(JournalEngineError) {
        guard hasTurn else { return }
        hasTurn = false
        try connected().execute("ROLLBACK")
    }

    // MARK: Waiting

    /// Looks at the journal once a second even if the engine notifies it: a dead connection brings no notifications.
    public func wait(for descriptor: Int32, until deadline: Instant?) throws(JournalEngineError) -> Bool {
        let interval = hasNotifications ? limits.journal.lookInterval : limits.journal.pollInterval
        let look = Instant.now.advanced(by: interval)
        let end = deadline.map { min($0, look) } ?? look
        let isNotified = try connected().waitForNotification(or: descriptor, until: end)
        return isNotified || Instant.now >= look
    }
}
