import Base
import JSON
import Messages

/// `postern-bench conns`: what an idle connection costs the server, or one whose stream waits for messages.
struct ConnsCommand {
    /// The stream that each connection opens.
    private enum Stream: String, CaseIterable {
        case none
        case revocations
        case authState = "auth-state"
    }

    private let target: Target
    private let stream: Stream
    private let statePath: String?
    private let connections: Int
    private let threads: Int
    private let quietSeconds: Int
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        connections = try arguments.number("--connections", default: 1_000, in: 1...50_000)
        threads = try arguments.number("--threads", default: 1, in: 1...64)
        stream = try arguments.choice("--stream", default: Stream.none)
        statePath = arguments.text("--state")
        quietSeconds = try arguments.number("--quiet-seconds", default: 7, in: 0...600)
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
        let population = try population()
        // The first few connections make the server set things up that later ones share.
        let first = try (0..<16).map { try connect($0, population) }
        let before = try process.usage()
        let openers = (0..<threads).map { index in
            ConnectionOpener(stride(from: index, to: connections, by: threads)) { try connect($0, population) }
        }
        let begin = Instant.now
        for opener in openers { opener.start() }
        var opening = Histogram()
        for opener in openers { opening.merge(try opener.finish()) }
        let seconds = Double(max(1, Instant.now.nanoseconds(since: begin))) / 1e9
        let opened = try process.usage()
        // The server frees what a stream needed in its first moments, once the stream is quiet.
        if stream != .none { pause(microseconds: UInt32(quietSeconds) * 1_000_000) }
        let after = try process.usage()
        try withExtendedLifetime((first, openers)) { try report(before, opened, after, opening, seconds) }
    }

    private func report(
        _ before: ServerProcess.Usage, _ opened: ServerProcess.Usage, _ after: ServerProcess.Usage,
        _ opening: Histogram,
        _ seconds: Double
    ) throws {
        let growth = Double(max(0, after.anonymousByteCount - before.anonymousByteCount)) / Double(connections)
        let cpu = Double(max(0, opened.cpuMicroseconds - before.cpuMicroseconds)) / Double(connections)
        let rate = Double(connections) / seconds
        func microseconds(_ share: Double) -> Double { Double(opening.value(atShare: share)) / 1e3 }
        switch format {
        case .table:
            try TextFile.printOut(
                "\(connections) idle connections (stream: \(stream.rawValue)): "
                    + "\(decimal(growth, places: 0)) bytes each, RssAnon \(after.anonymousByteCount / 1024) KiB\n"
                    + "opened by \(threads) thread\(threads == 1 ? "" : "s"), one after the other: "
                    + "\(decimal(rate, places: 0)) a second, "
                    + "p50 \(decimal(microseconds(0.5), places: 0)) µs, "
                    + "p99 \(decimal(microseconds(0.99), places: 0)) µs, "
                    + "\(decimal(cpu, places: 1)) µs of the server's CPU each\n")
        case .json:
            let json: JSONValue = [
                "connections": .integer(Int64(connections)), "stream": .string(Text(stream.rawValue)),
                "bytes_per_connection": .double(growth), "opened_per_second": .double(rate),
                "open_p99_microseconds": .double(microseconds(0.99)),
                "cpu_microseconds_per_connection": .double(cpu),
                "anonymous_bytes_before": .integer(Int64(before.anonymousByteCount)),
                "anonymous_bytes_after": .integer(Int64(after.anonymousByteCount)),
            ]
            try TextFile.printOut(String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n")
        }
    }

    private func population() throws -> Population {
        guard let statePath else {
            guard stream == .none else { throw UsageError("--stream needs --state") }
            return Population(tenantID: .empty)
        }
        let connection = try Connection(to: target.address, authorization: target.authorization)
        let population = try Population.load(statePath, over: connection).ofFirstTenant
        guard stream != .authState || !population.sessions.isEmpty else {
            throw BenchError(.notReady, "auth-state needs a --state file with --sessions")
        }
        let most = Limits().administration.watchesPerSessionMax
        if stream == .authState, connections + 16 > most * population.sessions.count {
            throw BenchError(
                .notReady, "one session has \(most) streams at most: the --state file has too few sessions")
        }
        return population
    }

    private func connect(_ number: Int, _ population: Population) throws -> Connection {
        let connection = try Connection(to: target.address, authorization: target.authorization)
        switch stream {
        case .none: break
        case .revocations:
            try connection.follow(
                service: "postern.v1.Tokens", method: "WatchRevocations",
                TokensWatchRevocationsRequest(tenantID: population.tenantID, heartbeatSeconds: 300)
            ) { try TokensWatchRevocationsResponse(decoding: $0).continues }
        case .authState:
            let session = population.sessions[number % population.sessions.count]
            try connection.follow(
                service: "postern.v1.Sessions", method: "WatchAuthState",
                SessionsWatchAuthStateRequest(
                    tenantID: population.tenantID, idToken: Text(validating: session.idToken) ?? .empty)
            ) { _ in false }
        }
        return connection
    }
}
