import Base
import JSON

/// `postern-bench idle`: what a connection that does nothing costs the server.
struct IdleCommand {
    private let target: Target
    private let connections: Int
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        connections = try arguments.number("--connections", default: 1_000, in: 1...50_000)
        format = try arguments.choice("-o", default: OutputFormat.table)
        try arguments.finish()
    }

    /// Each connection is authenticated by its HELLO and then left alone.
    func run() throws {
        guard let process = target.process else {
            throw BenchError(
                .notReady, "nothing on this machine listens on port \(target.address.port): --server-pid is missing")
        }
        raiseFileLimit()
        // The first few make the server set things up that later ones share.
        var open = try (0..<16).map { _ in try Connection(to: target.address, authorization: target.authorization) }
        let before = try process.usage()
        for _ in 0..<connections {
            open.append(try Connection(to: target.address, authorization: target.authorization))
        }
        let after = try process.usage()
        let growth = Double(max(0, after.anonymousByteCount - before.anonymousByteCount)) / Double(connections)
        try withExtendedLifetime(open) {
            switch format {
            case .table:
                try TextFile.printOut(
                    "\(connections) idle connections: \(decimal(growth, places: 0)) bytes each, "
                        + "RssAnon \(after.anonymousByteCount / 1024) KiB\n")
            case .json:
                let json: JSONValue = [
                    "connections": .integer(Int64(connections)), "bytes_per_connection": .double(growth),
                    "anonymous_bytes_before": .integer(Int64(before.anonymousByteCount)),
                    "anonymous_bytes_after": .integer(Int64(after.anonymousByteCount)),
                ]
                try TextFile.printOut(String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n")
            }
        }
    }
}
