import Glibc
import TestSupport
import Testing

/// `postern-bench start` with a server that does not do as it should.
@Suite struct BenchStartTests {
    /// Takes a connection, says so by writing its process id to `asked`, answers nothing, and ignores SIGTERM.
    private static let silentServer = """
        #!/usr/bin/env python3
        import os, signal, socket, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        directory, address = sys.argv[2], sys.argv[4]
        listener = socket.create_server(("127.0.0.1", int(address.split(":")[1])))
        connection, _ = listener.accept()
        connection.recv(1)
        with open(directory + "/asking", "w") as file: file.write(str(os.getpid()))
        os.rename(directory + "/asking", directory + "/asked")
        time.sleep(600)

        """

    /// Whether the process is there and not only waits to be reaped (proc(5), stat).
    private static func isRunning(_ id: pid_t) -> Bool {
        guard let stat = readFile("/proc/\(id)/stat") else { return false }
        let state = String(decoding: stat, as: UTF8.self).split(separator: ")").last?.split(separator: " ").first
        return state != nil && state != "Z" && state != "X"
    }

    @Test func `A second signal ends the server too`() throws {
        try withTemporaryDirectory { directory in
            let program = "\(directory)/server"
            writeFile(program, [UInt8](Self.silentServer.utf8))
            #expect(chmod(program, 0o700) == 0)
            writeFile("\(directory)/key", [UInt8]("pk_a_b".utf8))
            let bench = try ChildProcess(
                ChildProcess.built("postern-bench"),
                [
                    "start", "--server", "127.0.0.1:\(try freePort())", "--key-file", "\(directory)/key", "--program",
                    program, "--data-directory", directory,
                ], output: "\(directory)/said")
            var asked: [UInt8]?
            try blockUntil("the server was asked") {
                asked = readFile("\(directory)/asked")
                return asked != nil
            }
            let id = try #require(asked.flatMap { pid_t(String(decoding: $0, as: UTF8.self)) })
            defer { if Self.isRunning(id) { _ = kill(id, SIGKILL) } }
            // It waits for the server's HELLO, so it does not act on the first signal.
            bench.send(signal: SIGINT)
            bench.send(signal: SIGTERM)
            #expect(bench.wait(seconds: 60) == 130)
            // The kernel ends the process a moment after the signal.
            try blockUntil("the server has ended") { !Self.isRunning(id) }
        }
    }
}
