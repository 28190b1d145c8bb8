import Base
import Glibc
import TestSupport
import Testing

/// What posternd tells systemd: this test listens where the service manager would.
@Suite struct ServiceManagerTests {
    /// A socket as systemd makes it for NOTIFY_SOCKET.
    private final class Listener {
        private let descriptor: Int32

        /// `name`: a path, or "@" and a name in the kernel alone.
        init(_ name: String) throws {
            descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            var path = [UInt8](name.utf8)
            if path[0] == UInt8(ascii: "@") { path[0] = 0 }
            withUnsafeMutableBytes(of: &address) { $0[2...].copyBytes(from: path) }
            let code = withUnsafeBytes(of: &address) { bytes in
                bind(descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!, socklen_t(2 + path.count))
            }
            try #require(code == 0)
            var patience = timeval(tv_sec: 30, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        }

        deinit { close(descriptor) }

        /// The next message; empty when none comes.
        func next() -> String {
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = recv(descriptor, &bytes, bytes.count, 0)
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        }
    }

    @Test(arguments: [true, false])
    func `The manager hears of start and stop, and that the server lives`(isPath: Bool) throws {
        try withTemporaryDirectory { directory in
            let name = isPath ? "\(directory)/notify" : "@postern-test-\(getpid())"
            let manager = try Listener(name)
            let port = try freePort()
            let process = try ChildProcess(
                "env",
                [
                    "NOTIFY_SOCKET=\(name)", "WATCHDOG_USEC=600000", ChildProcess.built("posternd"),
                    "--data-directory", "\(directory)/data", "--listen-address", "127.0.0.1:\(port)",
                    "--http-address", "off", "--signing-algorithm", "ES256", "--drain-timeout-seconds", "90",
                ], output: "\(directory)/log")
            defer { process.kill() }
            #expect(manager.next() == "READY=1\nSTATUS=Serving on 127.0.0.1:\(port)")
            #expect((try? RawClient(port: port)) != nil, "it serves when it says so")
            for _ in 0..<3 { #expect(manager.next() == "WATCHDOG=1") }
            process.send(signal: SIGTERM)
            var last = manager.next()
            while last == "WATCHDOG=1" { last = manager.next() }
            #expect(last == "STOPPING=1\nSTATUS=Finishing the calls in flight\nEXTEND_TIMEOUT_USEC=95000000")
            #expect(process.wait(seconds: 30) == 0)
        }
    }

    @Test func `A watchdog that is another process's is not ours`() throws {
        try withTemporaryDirectory { directory in
            let manager = try Listener("\(directory)/notify")
            let process = try ChildProcess(
                "env",
                [
                    "NOTIFY_SOCKET=\(directory)/notify", "WATCHDOG_USEC=1000", "WATCHDOG_PID=1",
                    ChildProcess.built("posternd"), "--data-directory", "\(directory)/data", "--listen-address",
                    "127.0.0.1:\(try freePort())", "--http-address", "off", "--signing-algorithm", "ES256",
                ], output: "\(directory)/log")
            defer { process.kill() }
            #expect(manager.next().hasPrefix("READY=1\n"))
            process.send(signal: SIGTERM)
            #expect(manager.next().hasPrefix("STOPPING=1\n"))
        }
    }

    @Test func `A manager that cannot be told keeps no server from serving`() throws {
        try withTemporaryDirectory { directory in
            let port = try freePort()
            let process = try ChildProcess(
                "env",
                [
                    "NOTIFY_SOCKET=\(directory)/nobody", ChildProcess.built("posternd"), "--data-directory",
                    "\(directory)/data", "--listen-address", "127.0.0.1:\(port)", "--http-address", "off",
                    "--signing-algorithm", "ES256",
                ], output: "\(directory)/log")
            defer { process.kill() }
            try blockUntilServing(port: port)
            process.send(signal: SIGTERM)
            #expect(process.wait(seconds: 30) == 0)
            let log = String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self)
            #expect(log.contains("the service manager was not told"))
        }
    }
}
