import Base
import Glibc
import Identity
import JSON
import Messages
import Store
import TestSupport
import Testing

@testable import postern

/// The file that says how far an import came, and of which import it is.
@Suite struct ImportCheckpointTests {
    private typealias Target = ImportCheckpoint.Target

    private static func newTarget(
        _ server: String, _ tenantID: Text, _ format: UserFileFormat = .ndjson
    ) -> Target {
        Target(tenant: ServedTenant(server: server, tenantID: tenantID), format: format)
    }

    private static let target = newTarget("a:7400,b:7400", "staging")

    /// Runs `body` with a checkpoint of 6,000 rows, the name of the users' file, and the file itself, open.
    private func withCheckpoint(_ body: (_ path: String, _ users: String, _ source: Int32) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let (path, users) = ("\(directory)/at", "\(directory)/users")
            // More than a piece of the digest.
            writeFile(users, [UInt8](repeating: 0x61, count: 100_000))
            let source = try File.open(users)
            defer { close(source) }
            let fresh = try ImportCheckpoint(path, of: source, to: Self.target)
            #expect(fresh.continuation == nil)
            try fresh.note(ImportTotals.Settled(rowCount: 6_000, createdCount: 6_000))
            try body(path, users, source)
        }
    }

    private func refusal(_ path: String, _ source: Int32, _ target: Target) -> CommandError? {
        do throws(CommandError) {
            _ = try ImportCheckpoint(path, of: source, to: target)
            return nil
        } catch {
            return error
        }
    }

    @Test func `The same import goes on, and says where`() throws {
        try withCheckpoint { path, _, source in
            let next = try ImportCheckpoint(path, of: source, to: Self.target)
            #expect(next.settled.rowCount == 6_000)
            #expect(next.continuation == "going on behind row 6000 (tenant staging)")
            // The same servers in another order.
            let turned = Self.newTarget("b:7400,a:7400", "staging")
            #expect(refusal(path, source, turned) == nil)
        }
    }

    @Test func `An import into another tenant, to another server or in another form does not go on`() throws {
        try withCheckpoint { path, _, source in
            let message = "\(path): is of an import into tenant staging on a:7400,b:7400; name another file"
            for target in [
                Self.newTarget("a:7400,b:7400", "acme"), Self.newTarget("a:7400,b:7400", ""),
                Self.newTarget("c:7400", "staging"),
            ] {
                #expect(refusal(path, source, target) == CommandError.usage(message), "\(target)")
            }
            let other = Self.newTarget("a:7400,b:7400", "staging", .firebaseJSON)
            #expect(
                refusal(path, source, other)?.message
                    == "\(path): is of an import of ndjson, and this one is of firebase-json")
        }
    }

    @Test func `An import does not go on in a store that was restored meanwhile`() throws {
        try withCheckpoint { path, _, source in
            func target(_ historyID: Text) -> Target {
                let tenant = ServedTenant(server: "a:7400,b:7400", tenantID: "staging", historyID: historyID)
                return Target(tenant: tenant, format: .ndjson)
            }
            // An earlier version wrote the file, which does not tell.
            #expect(refusal(path, source, target("aa")) == nil)
            let noted = try ImportCheckpoint(path, of: source, to: target("aa"))
            try noted.note(noted.settled)
            #expect(refusal(path, source, target("aa")) == nil)
            // An older server does not tell.
            #expect(refusal(path, source, target("")) == nil)
            let error = try #require(refusal(path, source, target("bb")))
            #expect(error.exitCode == .usage && error.message.contains("a backup was restored"), "\(error)")
            #expect(error.hint == "remove it, and import the whole file with --on-conflict skip")
        }
    }

    @Test func `The server tells the history of its store`() async throws {
        try await withServer { server in
            let (users, path) = ("\(server.directory)/users.ndjson", "\(server.directory)/at")
            writeFile(users, UserLines.line(ImportUser(uid: "ann")) + UserLines.line(ImportUser(uid: "bob")))
            let source = try File.open(users)
            defer { close(source) }
            let words = ["user", "import", users, "--checkpoint", path]
            let address = "127.0.0.1:\(server.port)"
            func note(_ historyID: Text) throws {
                unlink(path)
                let tenant = ServedTenant(server: address, tenantID: "", historyID: historyID)
                let checkpoint = try ImportCheckpoint(path, of: source, to: Target(tenant: tenant, format: .ndjson))
                try checkpoint.note(ImportTotals.Settled(rowCount: 1, createdCount: 1))
            }
            try note("another")
            let refused = await TestConsole.run(words, on: server)
            #expect(refused.code == .usage && refused.said.contains("a backup was restored"), "\(refused.said)")
            let historyID = try server.project.store.read { try $0.historyID() }
            try note(Hex.encode(historyID))
            let done = await TestConsole.run(words, on: server)
            #expect(done.code == .ok && done.said.contains("going on behind row 1"), "\(done.said)")
            #expect(done.written.contains("created 2"), "\(done.written)")
        }
    }

    @Test(arguments: [0, 65_536, 99_999])
    func `A file of the same size with other contents is another file`(_ place: Int) throws {
        try withCheckpoint { path, users, source in
            var bytes = [UInt8](repeating: 0x61, count: 100_000)
            bytes[place] = 0x62
            writeFile(users, bytes)
            #expect(
                refusal(path, source, Self.target)
                    == CommandError.usage("\(path): is of another file: this one has other contents"))
        }
    }

    @Test func `A checkpoint of an earlier version, which names no tenant, is refused`() throws {
        try withCheckpoint { path, _, source in
            let former: JSONValue = [
                "bytes": 100_000, "rows": 6_000, "created": 6_000, "replaced": 0, "skipped": 0, "rejected": 0,
            ]
            writeFile(path, former.serialized())
            let error = try #require(refusal(path, source, Self.target))
            #expect(error.exitCode == .usage && error.message.contains("an earlier version wrote it"), "\(error)")
            #expect(error.hint == "remove it, and import the whole file with --on-conflict skip")
        }
    }
}
