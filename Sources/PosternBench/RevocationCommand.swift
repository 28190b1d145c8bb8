import Base
import Glibc
import JSON
import Messages
import PosternClient
import PosternVerifier
import Synchronization

/// `postern-bench revocation`: how long services that verify tokens themselves still accept a revoked token, and what
/// it costs the server to tell them.
struct RevocationCommand {
    private let target: Target
    private let statePath: String
    private let verifiers: Int
    private let verificationsPerSecond: Int
    private let rounds: Int
    private let quietSeconds: Int
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        statePath = try arguments.required("--state")
        verifiers = try arguments.number("--verifiers", default: 1_000, in: 1...50_000)
        verificationsPerSecond = try arguments.number("--verifications", default: 10_000, in: 0...200_000)
        rounds = try arguments.number("--revocations", default: 100, in: 1...10_000)
        quietSeconds = try arguments.number("--quiet-seconds", default: 7, in: 0...600)
        format = try arguments.choice("-o", default: OutputFormat.table)
        try arguments.finish()
    }

    /// Revokes one user after the other, each once all verifiers were told of the revocation before.
    func run() throws {
        let admin = try Connection(to: target.address, authorization: target.authorization)
        let population = try Population.load(statePath, over: admin).ofFirstTenant
        guard population.userCount > 0, !population.sessions.isEmpty else {
            throw BenchError(.notReady, "revocation needs a --state file with --users and --sessions")
        }
        raiseFileLimit()
        let hashes = try population.originAsFound(over: admin).hashes
        let process = target.process, before = try process?.usage()
        let followers = try Followers(target, tenantID: population.tenantID, count: verifiers)
        // The server frees what a connection needed in its first moments, once the connection is quiet.
        usleep(UInt32(quietSeconds) * 1_000_000)
        let idle = try process?.usage()
        let verifications = try Verifications(target, population, perSecond: verificationsPerSecond)
        let threads = [
            OSThread(name: "followers") { followers.run() }, OSThread(name: "verifications") { verifications.run() },
        ]
        defer {
            followers.stop()
            verifications.stop()
            for thread in threads { thread.join() }
        }
        usleep(500_000)  // until the load is on its way
        let begin = Instant.now
        let verifiedBefore = verifications.answeredCount
        let wakeBefore = try process?.usage()
        let latency = try revokeInTurn(population, followers, admin)
        let seconds = max(1e-3, Double(Instant.now.nanoseconds(since: begin)) / 1e9)
        let wakeAfter = try process?.usage()
        if let reason = verifications.failure { throw BenchError(.failed, "VerifyIdToken: \(reason)") }
        var report = RevocationReport(
            hashes: hashes, verifiers: verifiers, rounds: rounds, latency: latency,
            verificationsPerSecond: Double(verifications.answeredCount - verifiedBefore) / seconds)
        if let before, let idle {
            report.bytesPerVerifier =
                Double(max(0, idle.anonymousByteCount - before.anonymousByteCount)) / Double(verifiers)
            report.anonymousByteCount = idle.anonymousByteCount
        }
        if verificationsPerSecond == 0, let wakeBefore, let wakeAfter {
            report.wakeMicroseconds =
                Double(wakeAfter.cpuMicroseconds - wakeBefore.cpuMicroseconds) / Double(rounds * verifiers)
        }
        report.offlineNanoseconds = try offlineNanoseconds(population)
        try TextFile.printOut(report.printed(as: format))
    }

    /// Revokes one user per round. Returns how long after each answer the verifiers knew.
    private func revokeInTurn(
        _ population: Population, _ followers: Followers, _ admin: Connection
    ) throws -> Histogram {
        var latency = Histogram()
        for round in 0..<rounds {
            let uid = UserName.uid(round % population.userCount)
            let acknowledged = try revoke(uid, population.tenantID, admin)
            for arrival in try followers.arrivals(round: round) {
                latency.record(UInt64(max(0, arrival.nanoseconds(since: acknowledged))))
            }
        }
        return latency
    }

    /// Revokes a user. Returns when the answer had been read.
    private func revoke(_ uid: Text, _ tenantID: Text, _ admin: Connection) throws -> Instant {
        try admin.call(
            service: "postern.v1.Users", method: "RevokeTokens",
            UsersRevokeTokensRequest(tenantID: tenantID, uid: uid)
        ) { result in
            if case .refused(let reason) = result { throw BenchError(.failed, "RevokeTokens: \(reason)") }
            return Instant.now
        }
    }

    /// The time of one verification of a token that was seen before, in a real `TokenVerifier`, while its feed is open.
    private func offlineNanoseconds(_ population: Population) throws -> Double {
        let tokens = population.sessions.prefix(1_000).map { String(decoding: $0.idToken, as: UTF8.self) }
        let address = target.address.description
        let credential = Secret(Array(target.authorization.bytes.dropFirst("Bearer ".utf8.count)))
        let tenantID = population.tenantID
        var channelOptions = ChannelOptions()
        channelOptions.tls = target.channelTLS
        let settings = channelOptions
        let done = Semaphore()
        let outcome = Mutex<Result<Double, any Error>?>(nil)
        Task {
            let measured: Result<Double, any Error>
            do {
                let channel = try Channel(address: address, credentials: .apiKey(credential), options: settings)
                var options = VerifierOptions()
                options.tenants = .one(tenantID)
                let verifier = try await TokenVerifier(channel: channel, options: options)
                measured = .success(try Self.time(verifier, tokens))
                await channel.shutdown()
            } catch {
                measured = .failure(error)
            }
            outcome.withLock { $0 = measured }
            done.signal()
        }
        done.wait()
        guard let measured = outcome.withLock({ $0 }) else { preconditionFailure("nothing was measured") }
        return try measured.get()
    }

    /// The mean of up to 200,000 verifications, or of those that begin within a second.
    private static func time(_ verifier: TokenVerifier, _ tokens: [String]) throws -> Double {
        for token in tokens { _ = try verifier.verifyNow(token) }
        let passes = max(1, 1_000 / tokens.count)
        let begin = Instant.now
        let end = begin.advanced(by: .seconds(1))
        var count = 0
        repeat {
            for _ in 0..<passes {
                for token in tokens { _ = try verifier.verifyNow(token) }
            }
            count += passes * tokens.count
        } while count < 200_000 && Instant.now < end
        return Double(Instant.now.nanoseconds(since: begin)) / Double(count)
    }
}

/// The result of a run.
private struct RevocationReport {
    let hashes: Hashes
    let verifiers: Int
    let rounds: Int
    let latency: Histogram
    let verificationsPerSecond: Double
    /// Nil when the server's process is not known.
    var bytesPerVerifier: Double?
    var anonymousByteCount = 0
    /// Measured only without other load.
    var wakeMicroseconds: Double?
    var offlineNanoseconds = 0.0

    private static let shares = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)]

    func printed(as format: OutputFormat) -> String {
        format == .table ? table : String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n"
    }

    private func milliseconds(_ share: Double) -> Double { Double(latency.value(atShare: share)) / 1e6 }

    private var table: String {
        var text = "\(rounds) revocations, \(verifiers) verifiers, "
        text += "\(decimal(verificationsPerSecond, places: 0)) verifications/s on the server\n"
        text += "from acknowledged to known by a verifier:"
        for (name, share) in Self.shares { text += " \(name) \(decimal(milliseconds(share), places: 2)) ms" }
        text += "\n"
        if let bytesPerVerifier {
            text += "an idle verifier's stream: \(decimal(bytesPerVerifier / 1024, places: 1)) KiB of the server, "
            text += "RssAnon \(anonymousByteCount >> 20) MiB\n"
        }
        if let wakeMicroseconds { text += "telling one: \(decimal(wakeMicroseconds, places: 1)) µs of CPU\n" }
        text += "\(hashes)\n"
        return text + "a token seen before, verified by TokenVerifier: \(decimal(offlineNanoseconds, places: 0)) ns\n"
    }

    private var json: JSONValue {
        .object(
            [
                .init("hashes", .string(Text(hashes.rawValue))), .init("revocations", .integer(Int64(rounds))),
                .init("verifiers", .integer(Int64(verifiers))),
                .init("verifications_per_second", .double(verificationsPerSecond)),
                .init(
                    "latency_milliseconds",
                    .object(
                        Self.shares.map { name, share in .init(Text(name), .double(milliseconds(share))) })),
                .init("bytes_per_verifier", bytesPerVerifier.map { .double($0) } ?? .null),
                .init("anonymous_bytes", .integer(Int64(anonymousByteCount))),
                .init("wake_microseconds", wakeMicroseconds.map { .double($0) } ?? .null),
                .init("offline_verify_nanoseconds", .double(offlineNanoseconds)),
            ])
    }
}
