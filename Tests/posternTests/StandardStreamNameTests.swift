import Base
import TestSupport
import Testing

@testable import postern

/// "-" is standard input or output, or it is refused: it is never the name of a file.
@Suite struct StandardStreamNameTests {
    @Test func `A log and its key go to standard output`() async throws {
        try await withServer { server in
            let directory = server.directory
            let made = await TestConsole.run(["tenant", "create", "acme"], on: server)
            #expect(made.code == .ok, "\(made)")
            let log = await TestConsole.run(["-t", "acme", "audit", "export", "-"], on: server)
            #expect(log.code == .ok && log.said.contains(" events"), "\(log)")
            let key = await TestConsole.run(["audit", "key", "-"], on: server)
            #expect(key.code == .ok && key.written.hasPrefix("-----BEGIN PUBLIC KEY-----"), "\(key)")
            writeFile("\(directory)/acme.ndjson", [UInt8](log.written.utf8))
            writeFile("\(directory)/key.pem", [UInt8](key.written.utf8))
            let verified = await TestConsole.run(
                ["audit", "verify", "\(directory)/acme.ndjson", "--public-key", "\(directory)/key.pem"], on: server)
            #expect(verified.code == .ok, "\(verified)")
            #expect(!File.exists("-") && !File.exists("-.unfinished"))
        }
    }

    @Test func `Elsewhere it is refused`() async throws {
        try await withServer { server in
            let users = "\(server.directory)/users.ndjson"
            writeFile(users, [])
            for words in [
                ["audit", "verify", users, "--public-key", "-"], ["backup", "verify", "-"],
                ["server", "cert", "-", "--dns", "localhost"], ["user", "import", users, "--rejects", "-"],
                ["user", "import", users, "--checkpoint", "-"],
            ] {
                let refused = await TestConsole.run(words, on: server)
                #expect(refused.code == .usage && refused.said.contains("neither standard input nor"), "\(refused)")
            }
            #expect(!File.exists("-"))
        }
    }
}
