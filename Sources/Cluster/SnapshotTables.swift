import Base
import Journal
import Store

/// The rows of snapshots and of their parts.
///
/// A snapshot that is not complete is the claim of the node that makes it. A snapshot exists as long as its row: parts
/// without a row are deleted.
struct SnapshotTables {
    /// A complete snapshot.
    struct Row: Equatable {
        let id: [UInt8]
        let mark: JournalMark
        let byteCount: Int64
        let partCount: Int64
    }

    struct Part {
        let isLast: Bool
        let body: [UInt8]
    }

    private let connection: PostgreSQLConnection
    private let schema: String
    private let limits: JournalLimits

    init(_ tables: ClusterTables, _ limits: JournalLimits) {
        (self.connection, self.schema, self.limits) = (tables.connection, tables.schema, limits)
    }

    private var snapshots: String { "\(schema).postern_snapshot" }
    private var parts: String { "\(schema).postern_snapshot_part" }
    private var journal: String { "\(schema).postern_journal" }

    // MARK: Making one

    enum Claim { case claimed, taken, notInJournal }

    /// Begins a snapshot of a store at `mark` or after it, unless another node is making one.
    func claim(_ id: [UInt8], at mark: JournalMark) throws(JournalEngineError) -> Claim {
        try connection.execute(
            """
            DELETE FROM \(snapshots)
            WHERE NOT complete AND touched_at < now() - interval '\(limits.abandonedAfter.wholeSeconds) seconds'
            """)
        guard try holds(mark) else { return .notInJournal }
        let inserted = try connection.execute(
            """
            INSERT INTO \(snapshots) (id, position, hash) VALUES ($1::bytea, $2::bigint, $3::bytea)
            ON CONFLICT DO NOTHING RETURNING position
            """, parameters: [id, mark.position.bigEndianBytes, mark.hash.bytes])
        return inserted.rowCount == 1 ? .claimed : .taken
    }

    /// Keeps the claim while nothing is added to it. False if it is lost.
    func touch(_ id: [UInt8]) throws(JournalEngineError) -> Bool {
        let touched = try connection.execute(
            "UPDATE \(snapshots) SET touched_at = now() WHERE id = $1::bytea AND NOT complete RETURNING id",
            parameters: [id])
        return touched.rowCount == 1
    }

    /// False if the claim is lost.
    func add(_ body: [UInt8], part: UInt64, isLast: Bool, to id: [UInt8]) throws(JournalEngineError) -> Bool {
        let added = try connection.execute(
            """
            WITH claimed AS (
                UPDATE \(snapshots) SET touched_at = now() WHERE id = $1::bytea AND NOT complete RETURNING id)
            INSERT INTO \(parts) (snapshot, part, is_last, body)
            SELECT id, $2::bigint, $3::boolean, $4::bytea FROM claimed RETURNING part
            """, parameters: [id, part.bigEndianBytes, [isLast ? 1 : 0], body])
        return added.rowCount == 1
    }

    /// `mark`: the store was there or before. False if the claim is lost, or the journal does not hold that entry.
    func complete(_ id: [UInt8], parts: UInt64, bytes: UInt64, before mark: JournalMark) throws(JournalEngineError)
        -> Bool
    {
        let completed = try connection.execute(
            """
            UPDATE \(snapshots) SET complete = true, made_at = now(), parts = $2::bigint, bytes = $3::bigint
            WHERE id = $1::bytea AND NOT complete
                AND EXISTS (SELECT 1 FROM \(journal) WHERE position = $4::bigint AND hash = $5::bytea)
            RETURNING id
            """,
            parameters: [
                id, parts.bigEndianBytes, bytes.bigEndianBytes, mark.position.bigEndianBytes, mark.hash.bytes,
            ])
        return completed.rowCount == 1
    }

    func give(up id: [UInt8]) throws(JournalEngineError) {
        try connection.execute("DELETE FROM \(snapshots) WHERE id = $1::bytea AND NOT complete", parameters: [id])
        try deletePartsOfNone()
    }

    // MARK: Reading one

    func newest() throws(JournalEngineError) -> Row? {
        let rows = try connection.execute(
            """
            SELECT id, position, hash, bytes, parts FROM \(snapshots) WHERE complete
            ORDER BY position DESC, made_at DESC, id LIMIT 1
            """)
        guard rows.rowCount == 1 else { return nil }
        guard let id = rows.bytes(0, 0), id.count == SnapshotSeal.idByteCount,
            let position = rows.integer(0, 1).flatMap({ UInt64(exactly: $0) }),
            let hash = rows.bytes(0, 2).flatMap({ JournalHash(bytes: $0) }), let byteCount = rows.integer(0, 3),
            let partCount = rows.integer(0, 4)
        else { throw .unusable("the row of the newest snapshot in \(schema) cannot be read") }
        return Row(
            id: [UInt8](id), mark: JournalMark(position: position, hash: hash), byteCount: byteCount,
            partCount: partCount)
    }

    func exists(_ id: [UInt8]) throws(JournalEngineError) -> Bool {
        try connection.execute(
            "SELECT 1 FROM \(snapshots) WHERE id = $1::bytea AND complete", parameters: [id]
        ).rowCount == 1
    }

    func part(_ number: UInt64, of id: [UInt8]) throws(JournalEngineError) -> Part? {
        let rows = try connection.execute(
            "SELECT is_last, body FROM \(parts) WHERE snapshot = $1::bytea AND part = $2::bigint",
            parameters: [id, number.bigEndianBytes])
        guard rows.rowCount == 1, let isLast = rows.bytes(0, 0)?.first, let body = rows.bytes(0, 1) else { return nil }
        return Part(isLast: isLast == 1, body: [UInt8](body))
    }

    /// Whether the journal has the entry of this mark.
    func holds(_ mark: JournalMark) throws(JournalEngineError) -> Bool {
        try connection.execute(
            "SELECT 1 FROM \(journal) WHERE position = $1::bigint AND hash = $2::bytea",
            parameters: [mark.position.bigEndianBytes, mark.hash.bytes]
        ).rowCount == 1
    }

    /// Whether the journal's entries from `position` on are there, including that entry.
    func reachesBack(to position: UInt64) throws(JournalEngineError) -> Bool {
        let rows = try connection.execute("SELECT min(position) FROM \(journal)")
        return rows.integer(0, 0).flatMap { UInt64(exactly: $0) }.map { $0 <= position } ?? false
    }

    // MARK: Deleting

    /// Deletes all complete snapshots except the newest and those by which a node is joining.
    func deleteOld() throws(JournalEngineError) {
        try connection.execute(
            """
            DELETE FROM \(snapshots) AS old WHERE complete
                AND id <> (SELECT id FROM \(snapshots) WHERE complete
                    ORDER BY position DESC, made_at DESC, id LIMIT 1)
                AND NOT EXISTS (SELECT 1 FROM \(schema).postern_node AS node WHERE node.joining = old.id
                    AND node.seen_at > now() - interval '\(limits.abandonedAfter.wholeSeconds) seconds')
            """)
        try deletePartsOfNone()
    }

    private func deletePartsOfNone() throws(JournalEngineError) {
        let deletedAtOnceMax = 256
        while true {
            let deleted = try connection.execute(
                """
                DELETE FROM \(parts) WHERE (snapshot, part) IN (
                    SELECT snapshot, part FROM \(parts) AS part
                    WHERE NOT EXISTS (SELECT 1 FROM \(snapshots) AS snapshot WHERE snapshot.id = part.snapshot)
                    LIMIT \(deletedAtOnceMax))
                RETURNING part
                """)
            if deleted.rowCount < deletedAtOnceMax { return }
        }
    }

    // MARK: When one is due

    /// The number of entries above `position`, and their bytes.
    func growth(above position: UInt64) throws(JournalEngineError) -> (newest: UInt64, entries: Int, byteCount: Int) {
        let rows = try connection.execute(
            """
            SELECT coalesce(max(position), $1::bigint), count(*),
                coalesce(sum(octet_length(body)), 0)::bigint
            FROM \(journal) WHERE position > $1::bigint
            """, parameters: [position.bigEndianBytes])
        let newest = rows.integer(0, 0).flatMap { UInt64(exactly: $0) } ?? position
        return (newest, Int(rows.integer(0, 1) ?? 0), Int(rows.integer(0, 2) ?? 0))
    }
}

extension Duration {
    /// At least 1, for an interval of SQL.
    var wholeSeconds: Int64 { max(1, components.seconds) }
}
