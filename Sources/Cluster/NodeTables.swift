public import Base
import Glibc
import Store

/// A node of a cluster, as it registers.
public struct ClusterNode: Equatable, Sendable {
    public static let idByteCount = 16

    public let id: [UInt8]
    /// Drawn by each process, to tell two processes apart that use copies of one data directory.
    public let run: [UInt8]
    /// The address for its clients, shown to operators.
    public let address: String
    public let version: String

    /// `id` and `run` have 16 bytes; texts are cut to 200 bytes.
    public init(id: [UInt8], run: [UInt8], address: String, version: String) {
        (self.id, self.run) = (id, run)
        (self.address, self.version) = (String(address.prefix(200)), String(version.prefix(200)))
    }

    /// The node whose data directory this is. Its id is in the file `node-id`, which no snapshot or backup holds; it is
    /// drawn if there is none.
    public init(of directory: String, address: String, version: String, random: RandomSource) throws(FileError) {
        let id = Self.readID(directory + "/node-id") ?? random.bytes(Self.idByteCount)
        try Self.write(id, to: directory)
        self.init(id: id, run: random.bytes(Self.idByteCount), address: address, version: version)
    }

    /// The node under another id, which is kept in its data directory.
    func renamed(in directory: String, _ random: RandomSource) throws(FileError) -> ClusterNode {
        let id = random.bytes(Self.idByteCount)
        try Self.write(id, to: directory)
        return ClusterNode(id: id, run: run, address: address, version: version)
    }

    /// The node's id; nil if the directory has no readable one.
    public static func id(of directory: String) -> [UInt8]? { readID(directory + "/node-id") }

    private static func write(_ id: [UInt8], to directory: String) throws(FileError) {
        guard readID(directory + "/node-id") != id else { return }
        try PrivateFile.replace(directory + "/node-id", with: [UInt8]("\(Hex.encode(id))\n".utf8))
    }

    private static func readID(_ path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 2 * idByteCount)
        guard read(file, &bytes, bytes.count) == bytes.count else { return nil }
        return Hex.decode(bytes)
    }
}

/// The rows of nodes, and the trimming that they allow.
struct NodeTables {
    private let connection: PostgreSQLConnection
    private let schema: String
    private let limits: JournalLimits

    init(_ tables: ClusterTables, _ limits: JournalLimits) {
        (self.connection, self.schema, self.limits) = (tables.connection, tables.schema, limits)
    }

    private var nodes: String { "\(schema).postern_node" }
    private var snapshots: String { "\(schema).postern_snapshot" }
    private var journal: String { "\(schema).postern_journal" }

    /// The run that registered last as the node with this id.
    func run(of id: [UInt8]) throws(JournalEngineError) -> [UInt8]? {
        let rows = try connection.execute("SELECT run FROM \(nodes) WHERE id = $1::bytea", parameters: [id])
        return rows.rowCount == 1 ? rows.bytes(0, 0).map { [UInt8]($0) } : nil
    }

    /// The position with which the node is registered; nil if it is not.
    func position(of id: [UInt8]) throws(JournalEngineError) -> UInt64? {
        let rows = try connection.execute("SELECT position FROM \(nodes) WHERE id = $1::bytea", parameters: [id])
        return rows.rowCount == 1 ? rows.integer(0, 0).map { UInt64(clamping: $0) } : nil
    }

    /// `position`: the newest entry that the node does not need any more, because its store has it for good.
    func register(
        _ node: ClusterNode, position: UInt64, joining snapshot: [UInt8]? = nil
    ) throws(JournalEngineError) {
        try connection.execute(
            """
            INSERT INTO \(nodes) (id, run, address, version, position, joining)
            VALUES ($1::bytea, $2::bytea, $3::text, $4::text, $5::bigint, $6::bytea)
            ON CONFLICT (id) DO UPDATE SET run = excluded.run, address = excluded.address,
                version = excluded.version, position = excluded.position, joining = excluded.joining, seen_at = now()
            """,
            parameters: [
                node.id, node.run, [UInt8](node.address.utf8), [UInt8](node.version.utf8), position.bigEndianBytes,
                snapshot,
            ])
    }

    func remove(_ id: [UInt8]) throws(JournalEngineError) {
        try connection.execute("DELETE FROM \(nodes) WHERE id = $1::bytea", parameters: [id])
    }

    // MARK: Trimming

    /// Deletes the entries that no node needs: below the newest complete snapshot, and below every node that counts.
    /// Returns the ids of the nodes that no longer count, because they were away for too long or hold back too much.
    ///
    /// All nodes may do this at once. Each statement determines for itself what it may delete.
    func trim(while goesOn: () -> Bool) throws(JournalEngineError) -> (entryCount: Int, dropped: [[UInt8]]) {
        var dropped = try drop(
            """
            seen_at < now() - interval '\(limits.absentNodesKept.wholeSeconds) seconds'
                OR position < (SELECT max(position) FROM \(journal)) - \(limits.headsMax)
            """)
        var entryCount = try deleteEntries(while: goesOn)
        if try heldBackByteCount() > limits.heldBackByteCountMax {
            dropped += try drop(
                """
                position <= (SELECT max(position) FROM (
                    SELECT position, sum(octet_length(body)) OVER (ORDER BY position DESC) AS held_back
                    FROM \(journal) WHERE position < (SELECT max(position) FROM \(snapshots) WHERE complete)) AS entry
                WHERE held_back > \(limits.heldBackByteCountMax))
                """)
            entryCount += try deleteEntries(while: goesOn)
        }
        return (entryCount, dropped)
    }

    private func drop(_ condition: String) throws(JournalEngineError) -> [[UInt8]] {
        let rows = try connection.execute("DELETE FROM \(nodes) WHERE \(condition) RETURNING id")
        return (0..<rows.rowCount).compactMap { rows.bytes($0, 0).map { [UInt8]($0) } }
    }

    private func deleteEntries(while goesOn: () -> Bool) throws(JournalEngineError) -> Int {
        var count = 0
        while goesOn() {
            let deleted = try connection.execute(
                """
                DELETE FROM \(journal) WHERE position IN (
                    SELECT position FROM \(journal)
                    WHERE position < (SELECT max(position) FROM \(snapshots) WHERE complete)
                        AND position < coalesce((SELECT min(position) FROM \(nodes)), \(Int64.max))
                    ORDER BY position LIMIT \(limits.trimmedAtOnceMax))
                RETURNING position
                """
            ).rowCount
            count += deleted
            if deleted < limits.trimmedAtOnceMax { break }
        }
        return count
    }

    /// The bytes of the entries that are kept only for nodes that lag.
    private func heldBackByteCount() throws(JournalEngineError) -> Int {
        let rows = try connection.execute(
            """
            SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM \(journal)
            WHERE position < (SELECT max(position) FROM \(snapshots) WHERE complete)
            """)
        return Int(rows.integer(0, 0) ?? 0)
    }
}
