import Base
import Crypto
import JSON
import Messages
import Service
import TestSupport
import Testing
import Transport

@testable import postern

/// What `postern … watch` tells, and what it does when the server stops meanwhile.
@Suite struct WatchTests {
    /// A command that runs until it is cancelled, beside the test.
    private final class Watch: Sendable {
        let console = TestConsole()
        private let task: Task<ExitCode, Never>

        init(_ server: TestServer, _ words: [String]) {
            let console = console.console
            let line = TestConsole.globals(for: server) + words
            task = Task { await CommandLineTool.run(line, in: console) }
        }

        var exitCode: ExitCode { get async { await task.value } }

        func end() async {
            task.cancel()
            _ = await task.value
        }

        /// Waits until `text` was said or written.
        func wait(for text: String, line: Int = #line) async throws {
            try await until("\(text) came: \(console.said)\(console.written)", line: line) {
                console.said.contains(text) || console.written.contains(text)
            }
        }

        var revocations: [JSONValue] {
            get throws { try console.written.split(separator: "\n").map { try JSONValue(parsing: [UInt8]($0.utf8)) } }
        }
    }

    private func makeUser(_ server: TestServer, _ email: String) async throws -> String {
        let made = await TestConsole.run(["user", "create", "--email", email, "-q"], on: server)
        try #require(made.code == .ok, "\(made.said)")
        return String(made.written.dropLast())
    }

    private func revoke(_ server: TestServer, _ uid: String) async {
        server.clock.advance(by: .seconds(1))
        let revoked = await TestConsole.run(["user", "revoke-tokens", uid], on: server)
        #expect(revoked.code == .ok, "\(revoked.said)")
    }

    @Test func `Every revocation comes with a cursor, behind which another watch goes on`() async throws {
        try await withServer { server in
            let (ann, bob) = (try await makeUser(server, "ann@x.org"), try await makeUser(server, "bob@x.org"))
            let first = Watch(server, ["revocations", "watch", "-o", "ndjson"])
            try await first.wait(for: "the snapshot is complete; revocations: 0, cursor: ")
            await revoke(server, ann)
            try await first.wait(for: ann)
            await first.end()
            let cursor = try #require(try first.revocations.first?["cursor"]?.string)
            await revoke(server, bob)
            let second = Watch(server, ["revocations", "watch", "-o", "ndjson", "--cursor", cursor])
            try await second.wait(for: bob)
            await second.end()
            let revocations = try second.revocations
            #expect(revocations.map { $0["uid"]?.string } == [bob])
            #expect(revocations.first?["cursor"]?.string != cursor)
            #expect(!second.console.said.contains("snapshot"), "\(second.console.said)")
        }
    }

    @Test func `A watch behind -1 begins with the first record that is kept`() async throws {
        try await withServer { server in
            let ann = try await makeUser(server, "ann@x.org")
            let opened = await TestConsole.run(["tenant", "update", "--enable-anonymous-user", "true"], on: server)
            #expect(opened.code == .ok, "\(opened.said)")
            try await refuseSignUp(server)
            let events = Watch(server, ["audit", "watch", "--after", "-1", "-o", "ndjson"])
            try await events.wait(for: ann)
            await events.end()
            let denials = Watch(server, ["denials", "watch", "--after=-1", "-o", "ndjson"])
            try await denials.wait(for: "\"sequence\":1")
            await denials.end()
            let wrong = await TestConsole.run(["denials", "watch", "--after", "-2"], on: server)
            #expect(wrong.code == .usage, "\(wrong.said)")
        }
    }

    @Test func `A cursor that is of no use is said, unless -q`() async throws {
        try await withServer { server in
            let ann = try await makeUser(server, "ann@x.org")
            await revoke(server, ann)
            let watch = Watch(server, ["revocations", "watch", "--cursor", "other-1"])
            try await watch.wait(for: "the snapshot is complete; revocations: 1, ")
            #expect(watch.console.said.contains("CURSOR_UNKNOWN"))
            await watch.end()
            let quiet = Watch(server, ["revocations", "watch", "--cursor", "other-1", "-q"])
            try await quiet.wait(for: ann)
            #expect(quiet.console.said.isEmpty)
            await quiet.end()
        }
    }

    @Test func `Within a message only the last revocation has its cursor, in a snapshot none before it is whole`() {
        var place = WatchedPlace(cursor: "old")
        let page = TokensWatchRevocationsResponse(
            revocations: [Revocation(), Revocation()], snapshotReason: .cursorTooOld, continues: true)
        #expect(place.take(page) == ["", ""])
        #expect(place.resumption(page)?.contains("CURSOR_TOO_OLD") == true && place.completion(page) == nil)
        let end = TokensWatchRevocationsResponse(revocations: [Revocation(), Revocation()], cursor: "c1")
        #expect(place.take(end) == ["", "c1"])
        #expect(place.completion(end) == "the snapshot is complete; revocations: 4, cursor: c1")
        let next = TokensWatchRevocationsResponse(revocations: [Revocation(), Revocation()], cursor: "c2")
        #expect(place.take(next) == ["c1", "c2"] && place.completion(next) == nil)
    }

    @Test func `Watches of records outlive the server's stop, that of a session says that it ended`() async throws {
        try await withTemporaryDirectory { directory in try await restart(in: directory) }
    }

    private func restart(in directory: String) async throws {
        let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
        let (key, port, uid, watches) = try await withServer(
            directory: directory, clock: clock, masterKey: masterKey
        ) { server in
            let uid = try await makeUser(server, "ann@x.org")
            let settings = ["tenant", "update", "--enable-anonymous-user", "true", "--disabled-user-signup", "false"]
            #expect(await TestConsole.run(settings, on: server).code == .ok)
            let signedUp = await TestConsole.run(["account", "sign-up", "--anonymous", "-o", "json"], on: server)
            let tokens = try JSONValue(parsing: [UInt8](signedUp.written.utf8))["tokens"]
            let idToken = try #require(tokens?["id_token"]?.string)
            let watches = [
                Watch(server, ["revocations", "watch", "-o", "ndjson"]),
                Watch(server, ["denials", "watch", "-o", "ndjson"]),
                Watch(server, ["session", "watch", idToken]),
                Watch(server, ["audit", "watch", "--after", "1", "-o", "ndjson"]),
            ]
            try await watches[0].wait(for: "the snapshot is complete")
            try await watches[2].wait(for: "INITIAL")
            try await watches[3].wait(for: uid)
            // A denial shows that the denials are watched, too.
            try await refuseSignUp(server)
            try await watches[1].wait(for: "\"sequence\":1")
            await server.instance.server.drain()
            #expect(await watches[2].exitCode == .unavailable)
            #expect(watches[2].console.said.contains("The server stops; the session goes on"))
            return (server.adminKey, server.port, uid, watches)
        }
        try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: key) { server in
            let listener = try server.listen(port: port)
            await revoke(server, uid)
            try await refuseSignUp(server)
            try await watches[0].wait(for: uid)
            try await watches[1].wait(for: "\"sequence\":2")
            try await watches[3].wait(for: "TOKENS_REVOKED")
            for watch in [watches[0], watches[1], watches[3]] {
                #expect(watch.console.said.contains("Connecting again."))
                await watch.end()
            }
            listener.close()
        }
    }

    private func refuseSignUp(_ server: TestServer) async throws {
        let refuse = await TestConsole.run(["tenant", "update", "--disabled-user-signup", "true"], on: server)
        #expect(refuse.code == .ok, "\(refuse.said)")
        let refused = await TestConsole.run(["account", "sign-up", "--anonymous"], on: server)
        #expect(refused.code == .notAllowed && refused.said.contains("ADMIN_RESTRICTED_OPERATION"), "\(refused.said)")
    }
}
