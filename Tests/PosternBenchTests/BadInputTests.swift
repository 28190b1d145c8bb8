import Base
import Glibc
import TestSupport
import Testing

@testable import PosternBench

/// Servers that go away, schedules that cannot be met, full disks: what was measured so far is written, and the exit
/// status tells what happened.
@Suite struct BadInputTests {
    /// Runs a load through a proxy; once some requests went through, `meanwhile` does something to the proxy.
    private static func run(
        _ bench: BenchServer, _ words: [String], meanwhile: @escaping @Sendable (CuttingProxy) -> Void
    ) throws -> (kind: BenchError.Kind?, result: RunResult) {
        let proxy = CuttingProxy(target: bench.server.port, methods: ["Get"])
        defer { proxy.stop() }
        let watcher = OSThread(name: "meanwhile") {
            do {
                try blockUntil("fifty requests went through") { proxy.requestCount("Get") >= 50 }
            } catch {
                Issue.record(error)
            }
            meanwhile(proxy)
        }
        defer { watcher.join() }
        let file = bench.path("result.json")
        let common = ["--mix", "get=1", "--state", bench.path("state"), "--progress", "off", "--json", file]
        var kind: BenchError.Kind?
        do { try bench.run("run", common + words, port: proxy.port) } catch let error as BenchError {
            kind = error.kind
        }
        return (kind, try ResultReader.read(file))
    }

    @Test(arguments: [["--rate", "500"], ["--in-flight", "2"]])
    func `A server that goes away in the middle leaves the figures of before`(loop: [String]) async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let words = loop + ["--connections", "2", "--seconds", "600", "--warmup", "0"]
            let (kind, result) = try Self.run(bench, words) { $0.sever(goingDown: true) }
            #expect(kind == .failed && result.connectionsLost == 2)
            #expect(result.operations[0].record.okCount >= 40)
            // The run ends when the last connection is lost, not when the time is over.
            #expect(result.seconds < 300)
        }
    }

    @Test func `Answers that do not come are failures, and the run ends`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let words = [
                "--rate", "200", "--connections", "1", "--max-outstanding", "4", "--seconds", "1", "--warmup", "0",
                "--silence-max", "2",
            ]
            let (kind, result) = try Self.run(bench, words) { $0.hold() }
            #expect(kind == .failed)
            #expect(result.operations[0].record.errors["UNANSWERED"] == 4)
            #expect((result.notSent["SERVER_TOO_FAR_BEHIND"] ?? 0) > 0)
        }
    }

    @Test func `A server that refuses or closes connections is told before anything is sent`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let words = ["--mix", "get=1", "--state", bench.path("state")]
            for transport in ["native", "grpc"] {
                // Nothing listens on port 1 of this machine.
                #expect { try bench.run("run", words + ["--transport", transport], port: 1) } throws: { error in
                    (error as? BenchError)?.kind == .notReady
                }
            }
            let proxy = CuttingProxy(target: bench.server.port)
            defer { proxy.stop() }
            proxy.sever(goingDown: true)
            #expect(throws: BenchError.self) { try bench.run("run", words, port: proxy.port) }
        }
    }

    /// The system accepts the connections of a listening socket; nobody reads what comes in.
    @Test func `A server that takes connections and stays silent is given up by every command`() async throws {
        try await withTemporaryDirectory { directory in
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(listener) }
            try #require(listen(listener, 1_024) == 0)
            var name = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            try #require(
                withUnsafeMutablePointer(to: &name) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) }
                } == 0)
            let (key, certificates) = (directory + "/key", try TestCertificates(in: directory))
            try TextFile.write([UInt8]("pk_a_b".utf8), to: key)
            let common = [
                "--server", "127.0.0.1:\(UInt16(bigEndian: name.sin_port))", "--key-file", key, "--silence-max", "1",
            ]
            let health = ["--mix", "health=1", "--seconds", "1"]
            let commands: [[String]] = [
                ["run"] + health, ["run", "--rate", "100"] + health, ["run", "--transport", "grpc"] + health,
                ["run", "--ca-file", certificates.authorityFile] + health,
                ["saturate", "--slo", "p99<1s", "--mix", "health=1"],
                ["cost", "--mix", "health=1"], ["seed", "--state", directory + "/state"], ["conns"], ["providers"],
                ["users", "--users", "10"], ["tenants", "--tenants", "10"], ["hostile", "--seconds", "1"],
            ]
            // All at once, because each of them waits.
            let outcomes = try await atOnce(commands.count) { place -> String in
                do {
                    try Program.run(commands[place] + common)
                    return "no error"
                } catch let error as BenchError where error.kind == .failed {
                    return "\(error)"
                }
            }
            for (command, outcome) in zip(commands, outcomes) {
                let said = try outcome.get()
                print(command.prefix(3), said)
                #expect(said.contains("did nothing for 1 s"), "\(command.prefix(3)): \(said)")
            }
        }
    }

    @Test func `A schedule that cannot be met is told, with what was not sent`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let words = [
                "--mix", "get=1", "--rate", "1000000", "--connections", "1", "--max-outstanding", "1", "--when-full",
                "skip",
                "--slo", "achieved_rate>99%,error_rate<100%",
            ]
            #expect { _ = try bench.load("run", words) } throws: { ($0 as? BenchError)?.kind == .objective }
            let result = try ResultReader.read(bench.path("result.json"))
            #expect(result.operations[0].record.okCount > 0 && (result.notSent["SKIPPED"] ?? 0) > 100_000)
            #expect(result.verdicts.map(\.holds) == [false, true])
            #expect(result.warnings.contains { $0.contains("achieved") })
        }
    }

    @Test func `A disk that is full takes one result and not the others`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let words = ["--mix", "get=1", "--hdr", "/dev/full", "--csv", bench.path("series.csv")]
            #expect { _ = try bench.load("run", words) } throws: { error in
                (error as? BenchError)?.kind == .failed && "\(error)".contains("/dev/full: No space left")
            }
            #expect(try ResultReader.read(bench.path("result.json")).operations[0].record.okCount > 0)
            #expect(try TextFile.read(bench.path("series.csv")).count > 100)
            #expect(throws: BenchError.self) {
                try Program.run(["report", bench.path("result.json"), "--html", "/dev/full"])
            }
            var status = stat()
            #expect(stat("/dev/full", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR, "it is the device it was")
        }
    }

    @Test func `A file that cannot be written whole stays what it was, and nothing is left beside it`() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/file"
            try TextFile.write([1, 2, 3], to: path)
            #expect(throws: BenchError.self) { try TextFile.write([4], to: directory + "/none/file") }
            #expect(throws: BenchError.self) { try TextFile.write([4], to: directory) }
            #expect(try TextFile.read(path) == [1, 2, 3])
            #expect(access(path + ".new", F_OK) != 0)
        }
    }
}
