import Base
import Crypto
import Journal
import Store

/// The tables of a cluster in its engine, without the contents of the rows of the journal, of nodes and of snapshots.
struct ClusterTables {
    let connection: PostgreSQLConnection
    /// The schema's name, quoted.
    let schema: String
    private let agreement: ClusterAgreement?
    /// The version of the tables' form.
    static let format: Int64 = 1

    init(_ connection: PostgreSQLConnection, _ address: JournalAddress) {
        (self.connection, self.schema) = (connection, address.quotedSchema)
        self.agreement = address.agreement
    }

    /// Makes the tables, and a cluster that begins at `seal.beginning`. Throws if there is a cluster already.
    func begin(_ seal: JournalSeal) throws(JournalEngineError) {
        let id = Hex.encode(seal.clusterID)
        let hash = Hex.encode(seal.beginning.hash.bytes)
        for statement in [
            "BEGIN",
            "CREATE SCHEMA IF NOT EXISTS \(schema)",
            """
            CREATE TABLE \(schema).postern_cluster (
                id bytea PRIMARY KEY, format bigint NOT NULL, key_check bytea NOT NULL,
                project_id text NOT NULL, issuer text NOT NULL, action_url text NOT NULL,
                begun_at timestamptz NOT NULL DEFAULT now())
            """,
            """
            CREATE TABLE \(schema).postern_journal (
                position bigint PRIMARY KEY, hash bytea NOT NULL, previous_hash bytea NOT NULL,
                batch_id bytea NOT NULL, body bytea NOT NULL, appended_at timestamptz NOT NULL DEFAULT now())
            """,
            """
            INSERT INTO \(schema).postern_cluster (id, format, key_check, \(ClusterAgreement.columns))
            VALUES ('\\x\(id)', \(Self.format), '\\x\(Hex.encode(seal.keyCheck))', \(agreedValues))
            """,
            """
            INSERT INTO \(schema).postern_journal (position, hash, previous_hash, batch_id, body)
            VALUES (0, '\\x\(hash)', '\\x\(String(repeating: "00", count: 32))',
                '\\x\(String(repeating: "00", count: 16))', '')
            """,
        ] + tablesOfNodes + ["COMMIT"] { try connection.execute(statement) }
    }

    private var agreedValues: String {
        let values = agreement?.values ?? ["", "", ""]
        return values.map { "convert_from('\\x\(Hex.encode([UInt8]($0.utf8)))', 'UTF8')" }.joined(separator: ", ")
    }

    /// The tables of nodes and of snapshots.
    private var tablesOfNodes: [String] {
        [
            """
            CREATE TABLE \(schema).postern_node (
                id bytea PRIMARY KEY, run bytea NOT NULL, address text NOT NULL, version text NOT NULL,
                position bigint NOT NULL, joining bytea, joined_at timestamptz NOT NULL DEFAULT now(),
                seen_at timestamptz NOT NULL DEFAULT now())
            """,
            """
            CREATE TABLE \(schema).postern_snapshot (
                id bytea PRIMARY KEY, position bigint NOT NULL, hash bytea NOT NULL, bytes bigint NOT NULL DEFAULT 0,
                parts bigint NOT NULL DEFAULT 0, complete boolean NOT NULL DEFAULT false,
                made_at timestamptz NOT NULL DEFAULT now(), touched_at timestamptz NOT NULL DEFAULT now())
            """,
            // One node makes a snapshot at a time.
            "CREATE UNIQUE INDEX ON \(schema).postern_snapshot (complete) WHERE NOT complete",
            """
            CREATE TABLE \(schema).postern_snapshot_part (
                snapshot bytea NOT NULL, part bigint NOT NULL, is_last boolean NOT NULL, body bytea NOT NULL,
                PRIMARY KEY (snapshot, part))
            """,
        ]
    }

    /// The id of the cluster in this schema; nil if there is none.
    func readID() throws(JournalEngineError) -> [UInt8]? {
        let tables = try connection.execute("SELECT to_regclass('\(schema).postern_cluster') IS NOT NULL")
        guard tables.bytes(0, 0)?.first == 1 else { return nil }
        let rows = try connection.execute("SELECT id FROM \(schema).postern_cluster")
        guard rows.rowCount == 1, let id = rows.bytes(0, 0), id.count == JournalPlace.clusterIDByteCount else {
            throw .unusable("the schema \(schema) of the engine does not hold one cluster")
        }
        return [UInt8](id)
    }

    /// Refuses another cluster, another master key, a newer form, and settings that differ from the cluster's.
    func check(_ seal: JournalSeal) throws(JournalEngineError) {
        guard let id = try readID() else { throw .unusable("the schema \(schema) of the engine holds no cluster") }
        guard id == seal.clusterID else {
            throw .unusable("the schema \(schema) of the engine holds another cluster than this store")
        }
        let row = try connection.execute(
            "SELECT format, key_check, \(ClusterAgreement.columns) FROM \(schema).postern_cluster")
        guard let format = row.integer(0, 0), format <= Self.format else {
            throw .unusable("the cluster was raised to a newer form than this server knows")
        }
        guard let check = row.bytes(0, 1), check.elementsEqual(seal.keyCheck) else {
            throw .unusable("the master key is not the cluster's")
        }
        guard let agreement, let projectID = row.text(0, 2), let issuer = row.text(0, 3),
            let actionURL = row.text(0, 4)
        else { return }
        try agreement.require(ClusterAgreement(projectID: projectID, issuer: issuer, actionURL: actionURL))
    }
}
