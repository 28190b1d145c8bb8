import Base
import Glibc
import JSON
import Messages

/// `postern-bench start`: how soon a server answers after it starts over a data directory as it is.
struct StartCommand {
    private static let startSecondsMax = 60
    private static let stopSecondsMax = 30

    private let target: Target
    private let program: String
    private let directory: String
    private let startCount: Int
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        program = arguments.text("--program", default: "posternd")
        directory = try arguments.required("--data-directory")
        startCount = try arguments.number("--starts", default: 5, in: 1...1_000)
        format = try arguments.choice("-o", default: OutputFormat.table)
        try arguments.finish()
    }

    func run() throws {
        // So that a signal leaves no server behind, and a second one neither.
        Interruption.listen()
        guard ServerProcess(listeningOn: target.address.port) == nil else {
            throw BenchError(.notReady, "a server listens on port \(target.address.port): stop it first")
        }
        var latency = Histogram()
        var anonymousByteCount = 0
        for _ in 0..<startCount {
            let start = Instant.now
            let server = try StartedServer(
                program,
                [
                    "--data-directory", directory, "--listen-address", target.address.description, "--http-address",
                    "off",
                ])
            defer { server.kill() }
            try waitForAnswer(server)
            try Self.stopIfAsked()
            latency.record(UInt64(Instant.now.nanoseconds(since: start)))
            let process = ServerProcess(pid: server.pid)
            anonymousByteCount = max(anonymousByteCount, try process.usage().anonymousByteCount)
            guard server.stop(seconds: Self.stopSecondsMax) else {
                throw BenchError(.failed, "\(program) did not stop within \(Self.stopSecondsMax) s")
            }
        }
        try report(latency, anonymousByteCount)
    }

    /// Tries every millisecond until a health check is answered.
    private func waitForAnswer(_ server: StartedServer) throws {
        for _ in 0..<Self.startSecondsMax * 1_000 {
            try Self.stopIfAsked()
            if server.checkEnded() { throw BenchError(.failed, "\(program) ended before it served: run it to see why") }
            if let connection = try? Connection(to: target.address, authorization: target.authorization) {
                try connection.call(
                    service: "grpc.health.v1.Health", method: "Check", GRPCHealthCheckRequest()
                ) { result in
                    if case .refused(let reason) = result { throw BenchError(.failed, "Health/Check: \(reason)") }
                }
                return
            }
            pause(microseconds: 1_000)
        }
        throw BenchError(.failed, "\(program) did not answer within \(Self.startSecondsMax) s")
    }

    /// The caller ends its server.
    private static func stopIfAsked() throws {
        if Interruption.isAsked { throw BenchError(.interrupted, "interrupted: not all starts were measured") }
    }

    private func report(_ latency: Histogram, _ anonymousByteCount: Int) throws {
        let p50 = Double(latency.value(atShare: 0.5)) / 1e6
        let maximum = Double(latency.maximum) / 1e6
        switch format {
        case .table:
            try TextFile.printOut(
                "\(startCount) starts: first answer after p50 \(decimal(p50, places: 1)) ms, max "
                    + "\(decimal(maximum, places: 1)) ms; RssAnon \(anonymousByteCount / 1024) KiB\n")
        case .json:
            let json: JSONValue = [
                "starts": .integer(Int64(startCount)), "p50_milliseconds": .double(p50),
                "max_milliseconds": .double(maximum), "anonymous_bytes": .integer(Int64(anonymousByteCount)),
            ]
            try TextFile.printOut(String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n")
        }
    }
}
