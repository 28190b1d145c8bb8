import Glibc
import TestSupport
import Testing

/// A start that fails after the ports were bound: it says why, with its exit status, and leaves nothing behind.
@Suite struct FailedStartTests {
    @Test(arguments: ["off", "127.0.0.1:0"])
    func aStartThatFailsSaysWhy(httpAddress: String) throws {
        try withTemporaryDirectory { directory in
            let (data, log, socket) = (directory + "/data", directory + "/log", directory + "/socket")
            mkdir(data, 0o700)
            // The file that the first admin key is written to cannot be made.
            mkdir(data + "/admin-key.new", 0o700)
            let server = try ChildProcess(
                ChildProcess.built("posternd"),
                [
                    "--data-directory", data, "--listen-address", "unix:\(socket),127.0.0.1:0", "--http-address",
                    httpAddress, "--signing-algorithm", "ES256",
                ],
                output: log)
            #expect(server.wait(seconds: 60) == 1)
            let said = String(decoding: readFile(log) ?? [], as: UTF8.self)
            #expect(said.contains("admin-key.new"), "\(said)")
            #expect(!said.contains("SIGILL"), "\(said)")
            #expect(access(socket, F_OK) != 0)
        }
    }
}
