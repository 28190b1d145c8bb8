import Base
import Glibc
import Messages
import TestSupport
import Testing
import Wire

/// The first start of a real posternd, killed at every call that changes a file; the next one must serve, with an admin
/// key that works and is known.
@Suite struct FirstStartTests {
    @Test func aFirstStartMayBeKilledAnywhere() async throws {
        try await withTemporaryDirectory { directory in
            let library = try Self.killer(in: directory)
            let calls = try Self.calls(of: library, in: directory)
            #expect(calls.count > 40)
            let caseCounts = try await inHalves { half -> Int in
                var caseCount = 0
                for number in 1...calls.count where number % 2 == half {
                    for isTorn in calls[number - 1] == UInt8(ascii: "w") ? [false, true] : [false] {
                        caseCount += 1
                        let data = "\(directory)/\(number)-\(isTorn)"
                        try Self.killFirstStart(library, data, at: number, isTorn: isTorn)
                        try Self.expectServing(data, "killed at call \(number)\(isTorn ? ", torn" : "")")
                    }
                }
                return caseCount
            }
            print("\(caseCounts.reduce(0, +)) kills of a first start with \(calls.count) calls")
        }
    }

    /// posternd refuses a directory that held a store.
    @Test(arguments: ["admin-key", "admin-key.old", "witness", "restore.new"])
    func aLostDataFileIsNotReplaced(left: String) throws {
        try withTemporaryDirectory { directory in
            let data = directory + "/data"
            mkdir(data, 0o700)
            writeFile("\(data)/\(left)", [1])
            let server = try Self.posternd(data, log: directory + "/log")
            #expect(server.wait(seconds: 20) == 65)
            let said = String(decoding: readFile(directory + "/log") ?? [], as: UTF8.self)
            #expect(said.contains("data.mdb is missing, but \(left) is there"), "\(said)")
            #expect(access("\(data)/data.mdb", F_OK) != 0)
            #expect(access("\(data)/master-key", F_OK) != 0)
        }
    }

    /// How tools/quickstart gets a key after the first one was lost: the new key works, the former one is kept.
    @Test func aRecoveredAdminKeyWorks() throws {
        try withTemporaryDirectory { directory in
            let data = directory + "/data"
            try Self.expectServing(data, "first start")
            let first = readFile("\(data)/admin-key")
            let recovery = try ChildProcess(
                ChildProcess.built("posternd"), ["--recover-admin", "--data-directory", data],
                output: directory + "/log")
            #expect(recovery.wait(seconds: 20) == 0)
            #expect(readFile("\(data)/admin-key.old") == first)
            #expect(readFile("\(data)/admin-key") != first)
            #expect(access("\(data)/admin-key.recovered", F_OK) != 0)
            try Self.expectServing(data, "after the recovery")
        }
    }
}

// MARK: - Processes

extension FirstStartTests {
    /// Tests/Fixtures/kill-at-call.c as a library.
    private static func killer(in directory: String, testFile: String = #filePath) throws -> String {
        let tests = testFile.split(separator: "/").dropLast(2).joined(separator: "/")
        let library = directory + "/kill-at-call.so"
        let compiler = try ChildProcess(
            "cc", ["-O1", "-shared", "-fPIC", "-o", library, "/\(tests)/Fixtures/kill-at-call.c", "-ldl"])
        #expect(compiler.wait() == 0)
        return library
    }

    private static func posternd(
        _ data: String, log: String, environment: [String] = []
    ) throws -> ChildProcess {
        try ChildProcess(
            "env",
            environment + [
                ChildProcess.built("posternd"), "--data-directory", data, "--listen-address", "127.0.0.1:0",
                "--http-address", "off", "--signing-algorithm", "ES256",
            ],
            output: log)
    }

    /// The calls of a first start that nobody kills, one byte for each.
    private static func calls(of library: String, in directory: String) throws -> [UInt8] {
        let data = directory + "/whole"
        let server = try posternd(
            data, log: data + ".log",
            environment: ["LD_PRELOAD=\(library)", "KILL_COUNT=\(directory)/calls"])
        try expectAnswer(data, "nobody kills it")
        let calls = readFile(directory + "/calls") ?? []
        server.kill()
        return calls
    }

    private static func killFirstStart(
        _ library: String, _ data: String, at number: Int, isTorn: Bool
    ) throws {
        var environment = ["LD_PRELOAD=\(library)", "KILL_AT_CALL=\(number)"]
        if isTorn { environment.append("KILL_TORN=1") }
        let server = try posternd(data, log: data + ".log", environment: environment)
        // The order of the calls of several threads differs from one start to the next: the last ones may never come.
        try blockUntil("the first start ends or serves") { server.hasEnded || servingPort(data) != nil }
        server.kill()
    }

    private static func expectServing(_ data: String, _ story: String) throws {
        let server = try posternd(data, log: data + ".log")
        try expectAnswer(data, story)
        server.kill()
    }

    /// The port in the line of the log that says that the server serves; nil before.
    private static func servingPort(_ data: String) -> UInt16? {
        let log = String(decoding: readFile(data + ".log") ?? [], as: UTF8.self)
        guard let line = log.split(separator: "\n").first(where: { $0.contains("\"serving\"") }),
            let rest = line.split(separator: "\"address\":\"127.0.0.1:").dropFirst().first
        else { return nil }
        return UInt16(rest.prefix { $0.isNumber })
    }

    /// The server answers to the admin key in its directory.
    private static func expectAnswer(_ data: String, _ story: String) throws {
        do {
            try blockUntil("the server serves") { servingPort(data) != nil }
            let client = try RawClient(port: servingPort(data) ?? 0)
            defer { client.close() }
            guard let key = readFile("\(data)/admin-key"), key.count > 1 else {
                Issue.record("\(story): no admin key")
                return
            }
            client.apiKey = Secret(Array(key.dropLast()))
            _ = try client.call(
                "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest(),
                returning: ProjectListApiKeysResponse.self)
        } catch {
            let log = String(decoding: readFile(data + ".log") ?? [], as: UTF8.self)
            Issue.record("\(story): \(error): \(log)")
        }
    }
}
