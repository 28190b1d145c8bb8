import Base
import TestSupport
import Testing

/// Every method with values nobody should send (Tests/Fixtures/hostile_calls.py): a trap would be an outage for all.
@Suite struct HostileCallTests {
    @Test(arguments: [1, 2, UInt64.random(in: 3...1_000_000)])
    func noValuesTakeTheServerDownOrGetAnInternalError(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            let port = try freePort()
            let server = try CrashTests.start(directory, port)
            _ = try CrashTests.adminKey(directory)
            let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
            let output = "\(directory)/hostile"
            let process = try ChildProcess(
                "/usr/bin/python3",
                [
                    "/\(folder)/Fixtures/hostile_calls.py", "127.0.0.1:\(port)", "\(directory)/admin-key", "\(seed)",
                    "4",
                ], output: output)
            let status = process.wait(seconds: 60)
            #expect(status == 0, "seed \(seed): \(String(decoding: readFile(output) ?? [], as: UTF8.self))")
            server.kill()
        }
    }
}
