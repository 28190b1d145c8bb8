import Base
import JSON
import Messages
import PosternClient

/// postern cluster …: `status` and `verify` ask every node that --server names, `snapshot` one of them.
enum ClusterCommands {
    static let all = [status, verify, snapshot]

    static let status = Command(
        path: ["cluster", "status"], methods: ["Project/GetClusterStatus"],
        summary: "Shows how each node stands to the journal; exits with 6 if one cannot be reached.",
        example: "cluster status --server 10.0.0.1:7400,10.0.0.2:7400", isReadOnly: true
    ) { session in
        var nodes: [NodeStatus] = []
        for (address, channel) in try session.channelToEachServer() {
            let options = try session.callOptions()
            do throws(Failure) {
                let status = try await ProjectClient(channel: channel).getClusterStatus(.init(), options: options)
                nodes.append(NodeStatus(address: address, status: status, failure: nil))
            } catch {
                nodes.append(NodeStatus(address: address, status: nil, failure: error))
            }
        }
        session.output.print(nodes)
        if let failure = failure(of: nodes) { throw failure }
    }

    /// One failure for all nodes that did not answer as they should. Its status is that of a node that could not be
    /// reached, if there is one: what the other nodes said is then not the whole truth.
    private static func failure(of nodes: [NodeStatus]) -> Failure? {
        let failed = nodes.compactMap { node in node.failure.map { (address: node.address, failure: $0) } }
        guard let first = failed.first else { return nil }
        var failure = (failed.first { ExitCode($0.failure.code) == .unavailable } ?? first).failure
        failure.message = failed.map { "\($0.address): \($0.failure.message)" }.joined(separator: "; ")
        return failure
    }

    /// How often nodes that are not at the same position are asked.
    private static let triesMax = 10

    static let verify = Command(
        path: ["cluster", "verify"], methods: ["Project/DigestStore"],
        summary: "Says whether the nodes hold the same rows, table by table; best while little is written.",
        example: "cluster verify --server 10.0.0.1:7400,10.0.0.2:7400", isReadOnly: true
    ) { session in
        guard !Destination.namesOneTwice(try session.destination().server) else {
            throw CommandError.usage("--server names a node twice, and a node always holds the same as itself")
        }
        let nodes = try session.channelToEachServer()
        guard nodes.count > 1 else {
            throw CommandError.usage(
                "there is nothing to compare", hint: "--server ONE:PORT,OTHER:PORT names the nodes")
        }
        var digests: [ProjectDigestStoreResponse] = []
        for _ in 0..<triesMax {
            digests = []
            for (_, channel) in nodes {
                digests.append(
                    try await ProjectClient(channel: channel).digestStore(.init(), options: session.callOptions()))
            }
            if Set(digests.map(\.position)).count == 1 { break }
        }
        guard Set(digests.map(\.clusterID)).count == 1, let first = digests.first, !first.clusterID.isEmpty else {
            throw CommandError("the servers are not nodes of one cluster")
        }
        guard Set(digests.map(\.position)).count == 1 else {
            throw CommandError(
                "too much is written: the nodes were never at one position",
                hint: "ask again while less is written")
        }
        let tables = first.tables.map { table in
            ComparedTable(
                table: table, position: first.position,
                differing: zip(nodes, digests).compactMap { node, digest in
                    digest.tables.contains(table) ? nil : node.address
                })
        }
        session.output.print(tables)
        let names = tables.filter { !$0.differing.isEmpty }.map { "\($0.table.table)" }
        guard names.isEmpty, digests.allSatisfy({ $0.tables.count == tables.count }) else {
            throw CommandError("the nodes differ in \(names.joined(separator: ", "))", exitCode: .damaged)
        }
        let which = nodes.count == 2 ? "both nodes" : "all \(nodes.count) nodes"
        session.say("\(which) hold the same rows, up to entry \(first.position) of the journal")
    }
}

extension ClusterCommands {
    static let snapshot = Command(
        path: ["cluster", "snapshot"], methods: ["Project/MakeSnapshot"],
        summary: "Makes a snapshot, by which the next node joins, and waits until it is complete.",
        example: "cluster snapshot"
    ) { session in
        let made = try await ProjectClient(channel: session.channel()).makeSnapshot(
            .init(), options: session.callOptions())
        session.output.print(made)
    }
}

extension ProjectMakeSnapshotResponse: Record {
    static let columns = ["position", "byte_count"]

    var id: String { String(position) }
}

private struct NodeStatus: Record {
    static let columns = ["node", "in_cluster", "connected", "position", "behind_entries", "trouble"]

    let address: String
    let status: ProjectGetClusterStatusResponse?
    let failure: Failure?

    var id: String { address }
    var json: JSONValue {
        var members: [JSONValue.Member] = [.init("node", .string(Text(address)))]
        members += status?.json.object ?? []
        if let failure { members.append(.init("trouble", .string(Text("\(failure.message)")))) }
        return .object(members)
    }
}

private struct ComparedTable: Record {
    static let columns = ["table", "rows", "position", "differing"]

    let table: TableDigest
    let position: Int64
    /// The nodes whose digest differs from the first node's.
    let differing: [String]

    var id: String { "\(table.table)" }
    var json: JSONValue {
        [
            "table": .string(table.table), "rows": .integer(table.rows), "position": .integer(position),
            "sha256": .string(Hex.encode(table.sha256)),
            "differing": .array(differing.map { .string(Text($0)) }),
        ]
    }
}
