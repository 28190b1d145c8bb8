import Base
import TestSupport
import Testing

/// For twenty seconds, one tenant's app, its admin and a thousand connections from outside attack a whole server.
@Suite struct NoisyNeighbourAttackTests {
    /// No request of the other tenant may fail, ever. None may wait for seconds, as it would behind callers without
    /// limits. The limit of one second counts from the time a request is due, since `postern-bench hostile` has an
    /// open loop. It is far above the p99 of a release build (0.1 s on two processors), because this is a debug build
    /// on a machine that may do other things. For the same reason the best of three attacks counts.
    ///
    /// Twenty seconds show what a minute does: an attack's connections are ended after ten seconds by the server's
    /// limits, and begin again.
    @Test func anotherTenantIsServedAsIfNothingHappened() throws {
        var reports: [String] = []
        for _ in 0..<3 {
            let (status, report) = try Self.attack()
            if status == 0 { return }
            reports.append(report)
            if !report.contains("the canary's p99 is") { break }
        }
        Issue.record("\(reports.joined(separator: "\n"))")
    }

    private static func attack() throws -> (status: Int32?, report: String) {
        try withTemporaryDirectory { directory in
            let port = try freePort()
            let httpPort = try freePort()
            let server = try ChildProcess(
                ChildProcess.built("posternd"),
                [
                    "--data-directory", "\(directory)/data", "--listen-address", "127.0.0.1:\(port)",
                    "--http-address", "127.0.0.1:\(httpPort)",
                ], output: "\(directory)/log")
            _ = try CrashTests.adminKey("\(directory)/data")
            let bench = try ChildProcess(
                ChildProcess.built("postern-bench"),
                [
                    "hostile", "--server", "127.0.0.1:\(port)", "--http", "127.0.0.1:\(httpPort)", "--key-file",
                    "\(directory)/data/admin-key", "--seconds", "20", "--connections", "1000", "--p99-max", "1000",
                ], output: "\(directory)/report")
            let status = bench.wait(seconds: 150)
            server.kill()
            return (status, String(decoding: readFile("\(directory)/report") ?? [], as: UTF8.self))
        }
    }
}
