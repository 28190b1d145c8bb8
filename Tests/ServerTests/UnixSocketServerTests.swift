import Base
import Glibc
import TestSupport
import Testing

/// A posternd that listens on a Unix domain socket beside its port, and a `postern` that calls there.
@Suite struct UnixSocketServerTests {
    private static func mode(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode : nil
    }

    /// Starts posternd, each time over the same directory.
    private static func start(_ directory: String, _ settings: [String] = []) throws -> ChildProcess {
        let process = try ChildProcess(
            ChildProcess.built("posternd"),
            [
                "--data-directory", "\(directory)/data", "--listen-address",
                "127.0.0.1:0, unix:\(directory)/rpc.sock", "--http-address", "off", "--signing-algorithm", "ES256",
            ] + settings, output: "\(directory)/log")
        try blockUntil("posternd serves or has ended: \(log(directory))") {
            log(directory).contains("\"serving\"") || process.hasEnded
        }
        return process
    }

    private static func log(_ directory: String) -> String {
        String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self)
    }

    private static func list(_ directory: String) throws -> Int32 {
        let tool = try ChildProcess(
            ChildProcess.built("postern"),
            [
                "tenant", "list", "--server", "unix:\(directory)/rpc.sock", "--key-file", "\(directory)/data/admin-key",
            ], output: "\(directory)/said")
        return tool.wait()
    }

    @Test func `The tool calls by a path, and the file is there for as long as the server`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rpc.sock"
            for mode: mode_t in [0o600, 0o660] {
                let process = try Self.start(directory, ["--unix-socket-mode", "0" + String(mode, radix: 8)])
                defer { process.kill() }
                #expect(Self.mode(path) == S_IFSOCK | mode)
                #expect(try Self.list(directory) == 0, "\(Self.log(directory))")
                #expect(Self.log(directory).contains(",unix:\(path)\""))
                process.send(signal: SIGTERM)
                #expect(process.wait(seconds: 30) == 0)
                #expect(Self.mode(path) == nil)
            }
        }
    }

    @Test func `A killed server's socket is replaced, and a living one's is not`() throws {
        try withTemporaryDirectory { directory in
            let first = try Self.start(directory)
            first.kill()
            #expect(Self.mode("\(directory)/rpc.sock") != nil)
            let second = try Self.start(directory)
            defer { second.kill() }
            #expect(try Self.list(directory) == 0)
            // Another store, the same socket.
            let third = try ChildProcess(
                ChildProcess.built("posternd"),
                [
                    "--data-directory", "\(directory)/other", "--listen-address", "unix:\(directory)/rpc.sock",
                    "--http-address", "off", "--signing-algorithm", "ES256",
                ], output: "\(directory)/other-log")
            #expect(third.wait(seconds: 60) == 1)
            let said = String(decoding: readFile("\(directory)/other-log") ?? [], as: UTF8.self)
            #expect(said.contains("another program uses it"), "\(said)")
            #expect(try Self.list(directory) == 0)
        }
    }
}
