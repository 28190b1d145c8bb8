import Base
import Glibc
import Service
import TLS
import TestSupport
import Testing
import Transport

@testable import PosternBench

/// A real server with a port for plain text and one for TLS, and the load tool's commands against it.
struct BenchServer {
    let server: TestServer
    let tlsPort: UInt16
    let certificates: TestCertificates
    let directory: String

    /// Runs `body` against a fresh server, with a fresh directory for files.
    static func with(_ body: (BenchServer) async throws -> Void) async throws {
        try await withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            var settings = ServerTLS.Settings(
                certificateFile: certificates.certificateFile, keyFile: certificates.keyFile)
            settings.clientCAFile = certificates.authorityFile
            let tls = try ServerTLS(settings, limits: Limits(), log: .silent)
            try await withServer { server in
                let wanted = try #require(SocketAddress(host: "127.0.0.1", port: 0))
                let listener = try server.instance.server.listen(wanted, tls: tls)
                listener.start()
                let key = server.adminKey.withBytes { [UInt8]($0) }
                try TextFile.write(key, to: directory + "/key")
                let outcome: Result<Void, any Error>
                do {
                    outcome = .success(
                        try await body(
                            BenchServer(
                                server: server, tlsPort: listener.address.port, certificates: certificates,
                                directory: directory)))
                } catch { outcome = .failure(error) }
                listener.close()
                try outcome.get()
            }
        }
    }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    /// Runs a command with the flags that name the server; `port` replaces the port for plain text.
    func run(_ command: String, _ words: [String], port: UInt16? = nil) throws {
        let flags = ["--server", "127.0.0.1:\(port ?? server.port)", "--key-file", path("key")]
        try Program.run([command] + flags + words)
    }

    /// Seeds a few users and sessions with cheap hashes; the state file is `state`. `words` are flags and values.
    func seed(_ words: [String] = []) throws {
        var flags = ["--users": "20", "--password-users": "2", "--sessions": "40"]
        for index in stride(from: 0, to: words.count - 1, by: 2) { flags[words[index]] = words[index + 1] }
        try run("seed", ["--state", path("state"), "--hashes", "synthetic"] + flags.flatMap { [$0.key, $0.value] })
    }

    /// Runs a load for a second and reads its result.
    func load(_ command: String = "run", _ words: [String], port: UInt16? = nil) throws -> RunResult {
        let file = path("result.json")
        unlink(file)
        let quiet = ["--state", path("state"), "--progress", "off", "--json", file, "-o", "json"]
        let seconds = command == "run" ? ["--seconds", "1", "--warmup", "0"] : []
        try run(command, words + quiet + seconds, port: port)
        return try ResultReader.read(file)
    }
}
