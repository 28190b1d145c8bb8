import Base
import Messages
import TestSupport
import Testing

@testable import postern

/// Commands that make several calls.
@Suite struct ManyCallsTests {
    @Test func `A deletion that fails says how many users are deleted already`() async throws {
        try await withServer { server in
            let (users, uids) = ("\(server.directory)/users.ndjson", "\(server.directory)/uids")
            let names = (0..<1_000).map { "user-\($0)" }
            writeFile(users, names.flatMap { UserLines.line(ImportUser(uid: Text($0))) })
            let imported = await TestConsole.run(["user", "import", users], on: server)
            #expect(imported.code == .ok, "\(imported.said)")
            // No message holds the second thousand.
            let long = (0..<1_000).map { "\($0)" + String(repeating: "x", count: 5_000) }
            writeFile(uids, [UInt8]((names + long).joined(separator: "\n").utf8))
            let words = ["user", "batch-delete", uids, "--force", "--confirm", "default pool"]
            let deleted = await TestConsole.run(words, on: server)
            #expect(deleted.code != .ok, "\(deleted.said)")
            #expect(deleted.said.contains("stopped: 1000 users were deleted before\n"), "\(deleted.said)")
        }
    }

    @Test func `A limit that is none is refused before anything is asked`() async {
        let test = TestConsole()
        let server = ["--server", "127.0.0.1:1", "--timeout", "1s"]
        let words = server + ["user", "query", "--sort", "last-sign-in", "--limit", "0"]
        #expect(await CommandLineTool.run(words, in: test.console) == .usage)
        #expect(test.said.contains("--limit is a whole number"), "\(test.said)")
    }
}
