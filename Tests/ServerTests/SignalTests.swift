import Base
import Glibc
import Messages
import TestSupport
import Testing
import Wire

/// How posternd ends, and what does not end it: signals, a log that nobody reads, a disk that does not answer.
@Suite struct SignalTests {
    /// posternd as a process of its own. Its log is a file, or a pipe that nobody reads; a file controls its syncs.
    private struct Daemon {
        let process: ChildProcess
        let port: UInt16
        let key: Secret
        let directory: String

        static func run(
            log: String? = nil, http: String = "off", settings: [String] = [], _ body: (Daemon) throws -> Void
        ) throws {
            try withTemporaryDirectory { directory in
                let library = "\(directory)/hanging-sync.so"
                let source = #filePath.replacing("ServerTests/SignalTests.swift", with: "Fixtures/hanging-sync.c")
                let compiler = try ChildProcess("cc", ["-shared", "-fPIC", "-o", library, source, "-ldl"])
                #expect(compiler.wait() == 0)
                let port = try freePort()
                let variables = ["LD_PRELOAD=\(library)", "HANGING_SYNC=\(directory)/sync"]
                let process = try ChildProcess(
                    "env",
                    variables + [
                        ChildProcess.built("posternd"), "--data-directory", "\(directory)/data", "--listen-address",
                        "127.0.0.1:\(port)", "--http-address", http, "--signing-algorithm", "ES256",
                    ] + settings, output: log ?? "\(directory)/log")
                defer { process.kill() }
                try blockUntilServing(port: port)
                let key = try CrashTests.adminKey("\(directory)/data")
                try body(Daemon(process: process, port: port, key: key, directory: directory))
            }
        }

        func syncs(_ order: String) { writeFile("\(directory)/sync", [UInt8](order.utf8)) }

        /// Makes a read, or a write that waits for the disk; does not wait for the answer when `isPatient` is false.
        func ask(writes: Bool = false, isPatient: Bool = true) throws {
            let client = try RawClient(port: port)
            client.apiKey = key
            guard writes else {
                _ = try client.call(
                    "postern.v1.Project/Stats", ProjectStatsRequest(), returning: ProjectStatsResponse.self)
                return
            }
            let request = UsersCreateRequest(email: "ada@example.com")
            guard !isPatient else {
                _ = try client.call("postern.v1.Users/Create", request, returning: UsersCreateResponse.self)
                return
            }
            _ = try client.hello()
            let stream = client.nextStream()
            try client.send(client.request("postern.v1.Users/Create", request, stream: stream))
            // The answer to a PING behind the request tells that the request was read.
            var ping = ByteBuffer()
            ControlFrame.ping(1, ack: false).append(to: &ping)
            try client.send(ping.copyBytes())
            _ = try? client.readFrame()
        }

        var log: String { String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self) }
    }

    /// Every signal but those that cannot be caught and those of a broken program.
    private static let signals: [Int32] = (1...31).filter { number in
        ![SIGKILL, SIGSTOP, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS].contains(number)
    }

    @Test func `Three signals stop in good order, and no other ends the server`() throws {
        let stopping = [SIGTERM, SIGINT, SIGQUIT]
        try Daemon.run { daemon in
            for number in Self.signals + [34, 50, 64] where !stopping.contains(number) {
                daemon.process.send(signal: number)
                if number == SIGTSTP { daemon.process.send(signal: SIGCONT) }
                try daemon.ask()
            }
            daemon.process.send(signal: SIGHUP)
            try daemon.ask(writes: true)
            daemon.process.send(signal: SIGTERM)
            #expect(daemon.process.wait(seconds: 30) == 0)
            #expect(daemon.log.split(separator: "\n").count { $0.contains("a signal was ignored") } == 13)
        }
        for number in stopping.dropFirst() {
            try Daemon.run { daemon in
                daemon.process.send(signal: number)
                #expect(daemon.process.wait(seconds: 30) == 0)
                #expect(daemon.log.contains("\"stopped\""))
            }
        }
    }

    @Test func `SIGHUP opens the access log again`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/calls"
            try Daemon.run(settings: ["--access-log", path]) { daemon in
                try daemon.ask()
                func calls(_ path: String) -> String { String(decoding: readFile(path) ?? [], as: UTF8.self) }
                // The line is written after the answer. A line that still waits would go to the new file.
                try blockUntil("the call is logged") { calls(path).contains("Project/Stats") }
                #expect(rename(path, "\(path).1") == 0)
                daemon.process.send(signal: SIGHUP)
                try blockUntil("the log is opened again") { access(path, F_OK) == 0 }
                try daemon.ask(writes: true)
                daemon.process.send(signal: SIGTERM)
                #expect(daemon.process.wait(seconds: 30) == 0)
                #expect(calls("\(path).1").contains("Project/Stats"))
                #expect(calls(path).contains("Users/Create"))
                #expect(daemon.log.contains("SIGHUP: the access log is opened again"))
            }
        }
    }

    // MARK: A disk that does not answer

    @Test func `A stop ends in its time while a sync hangs`() throws {
        try Daemon.run(settings: ["--drain-timeout-seconds", "1"]) { daemon in
            daemon.syncs("hang")
            try daemon.ask(writes: true, isPatient: false)
            daemon.process.send(signal: SIGTERM)
            #expect(daemon.process.wait(seconds: 30) == 75)
            #expect(daemon.log.contains("the stop took too long"))
        }
    }

    // MARK: A log that nobody reads

    /// A pipe that is full, and stays so.
    private static func withFullPipe(_ body: (String) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/pipe"
            #expect(mkfifo(path, 0o600) == 0)
            let end = open(path, O_RDWR | O_NONBLOCK)
            defer { close(end) }
            let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 1)
            while write(end, bytes, 1) == 1 {}
            try body(path)
        }
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGQUIT])
    func `A log that nobody reads does not keep a stopping server alive`(number: Int32) throws {
        try Self.withFullPipe { pipe in
            try Daemon.run(log: pipe) { daemon in
                try daemon.ask(writes: true)
                daemon.process.send(signal: number)
                #expect(daemon.process.wait(seconds: 30) == 0)
            }
        }
    }

    @Test func `Nor one whose store has failed, or whose disk does not answer`() throws {
        for (order, status) in [("fail", Int32(70)), ("hang", 75)] {
            try Self.withFullPipe { pipe in
                try Daemon.run(log: pipe, settings: ["--drain-timeout-seconds", "1"]) { daemon in
                    daemon.syncs(order)
                    try daemon.ask(writes: true, isPatient: false)
                    if order == "hang" { daemon.process.send(signal: SIGTERM) }
                    #expect(daemon.process.wait(seconds: 30) == status)
                }
            }
        }
    }

    @Test func `Nor one that cannot start`() throws {
        try Self.withFullPipe { pipe in
            let process = try ChildProcess(ChildProcess.built("posternd"), ["--no-such-flag"], output: pipe)
            #expect(process.wait(seconds: 30) == 1)
        }
    }

    @Test func `A disk that does not answer is told while changes wait for it`() throws {
        let port = try freePort()
        try Daemon.run(http: "127.0.0.1:\(port)") { daemon in
            daemon.syncs("hang")
            try daemon.ask(writes: true, isPatient: false)
            try blockUntil("/healthz tells of the disk") {
                try FaultyServer.get("/healthz", port: port).hasSuffix(
                    "DEGRADED: the disk does not answer; changes wait for it\n")
            }
            let metrics = try FaultyServer.get("/metrics", port: port)
            #expect(metrics.contains("postern_store_degraded 1\n"))
            #expect(!metrics.contains("postern_store_commit_running_seconds 0\n"))
            try daemon.ask()
            try blockUntil("the log tells of the disk") { daemon.log.contains("the disk does not answer") }
            daemon.syncs("")
            try blockUntil("/healthz says that it is over") {
                try FaultyServer.get("/healthz", port: port).hasSuffix("\r\nSERVING\n")
            }
        }
    }
}
