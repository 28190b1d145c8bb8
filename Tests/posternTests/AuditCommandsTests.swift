import Base
import Crypto
import Glibc
import Identity
import JSON
import Messages
import TestSupport
import Testing

@testable import postern

/// postern audit, against a real server; and what verify finds in exports that were tampered with.
@Suite struct AuditCommandsTests {
    /// A server whose tenant acme has eight events, the key in `key.pem`, and the export of the log in `acme.ndjson`.
    private func withExport(
        _ body: (_ server: TestServer, _ directory: String, _ lines: [String]) async throws -> Void
    ) async throws {
        try await withServer { server in
            let directory = server.directory
            for words in [
                ["tenant", "create", "acme"], ["tenant", "update", "acme", "--display-name", "Acme"],
                ["-t", "acme", "user", "create", "--uid", "u1"], ["-t", "acme", "user", "create", "--uid", "u2"],
                ["-t", "acme", "user", "create", "--uid", "u3"], ["-t", "acme", "user", "create", "--uid", "u4"],
                ["-t", "acme", "user", "delete", "u2"], ["-t", "acme", "user", "delete", "u1"],
                ["audit", "key", "\(directory)/key.pem"],
                ["-t", "acme", "audit", "export", "\(directory)/acme.ndjson"],
            ] {
                let ended = await TestConsole.run(words, on: server)
                #expect(ended.code == .ok, "\(words): \(ended.said)")
            }
            let text = String(decoding: readFile("\(directory)/acme.ndjson") ?? [], as: UTF8.self)
            let lines = text.split(separator: "\n").map(String.init)
            #expect(lines.count == 10)
            try await body(server, directory, lines)
        }
    }

    private func verify(_ file: String, _ directory: String, _ words: [String] = []) async -> TestConsole.Outcome {
        let test = TestConsole()
        let all = ["audit", "verify", file, "--public-key", "\(directory)/key.pem"] + words
        return (await CommandLineTool.run(all, in: test.console), test.written, test.said)
    }

    /// What `verify` says of these lines.
    private func fault(_ lines: [String], _ directory: String) async -> String {
        writeFile("\(directory)/tampered", [UInt8]((lines.joined(separator: "\n") + "\n").utf8))
        let found = await verify("\(directory)/tampered", directory)
        #expect(found.code == .damaged && found.code.rawValue == 65, "\(found.written)")
        return found.said
    }

    @Test func `An export is sound, says what it holds, and is not overwritten`() async throws {
        try await withExport { server, directory, _ in
            let sound = await verify("\(directory)/acme.ndjson", directory, ["-o", "json"])
            #expect(sound.code == .ok, "\(sound.said)")
            let json = try JSONValue(parsing: [UInt8](sound.written.utf8))
            #expect(json["sound"] == true && json["tenant_id"] == "acme" && json["events"] == 8)
            #expect(json["first_sequence"] == 1 && json["last_sequence"] == 8)
            let again = await TestConsole.run(
                ["-t", "acme", "audit", "export", "\(directory)/acme.ndjson"], on: server)
            #expect(again.code == .usage && again.said.contains("exists already"))
            let whose = await verify("\(directory)/acme.ndjson", directory, ["-t", "other"])
            #expect(whose.code == .damaged && whose.said.contains("is the log of tenant \"acme\""))
            let keyless = TestConsole()
            #expect(await keyless.run("audit", "verify", "\(directory)/acme.ndjson") == .usage)
            #expect(keyless.said.contains("--public-key is missing"))
        }
    }

    @Test func `An event that was altered is named`() async throws {
        try await withExport { _, directory, lines in
            func changed(_ index: Int, _ from: String, _ to: String) -> [String] {
                var lines = lines
                let place = lines[index].range(of: from)
                #expect(place != nil, "\(lines[index])")
                if let place { lines[index].replaceSubrange(place, with: to) }
                return lines
            }
            func change(_ index: Int, _ from: String, _ to: String) async -> String {
                await fault(changed(index, from, to), directory)
            }
            // The first line and the last say nothing that the server did not sign.
            #expect(await change(0, #""project_id":""#, #""project_id":"x"#).contains("the first line was altered"))
            #expect(await change(0, "{", #"{"note":"checked","#).contains("the first line was altered"))
            #expect(await change(9, #""key_id":""#, #""key_id":"x"#).contains("not as it was written"))
            // Altered: the readable part, the committed part, both, a number, a line.
            #expect(await change(4, "\"uid\":\"u2\"", "\"uid\":\"u9\"").contains("event 4 was altered"))
            let payload = Hex.encode([UInt8]("u2".utf8)).string
            let forged = Hex.encode([UInt8]("u9".utf8)).string
            #expect(await change(4, payload, forged).contains("event 4"))
            var both = changed(4, "\"uid\":\"u2\"", "\"uid\":\"u9\"")
            both[4] = both[4].replacingOnce(payload, forged)
            #expect(await fault(both, directory).contains("event 4 was altered"))
            #expect(await change(4, "{\"sequence\"", "{\"note\":\"x\",\"sequence\"").contains("event 4"))
            #expect(await change(3, "\"global_sequence\":", "\"global_sequence\":1").contains("event 3"))
            var last = lines
            last[8] = last[8].replacingOnce("\"uid\":\"u1\"", "\"uid\":\"u7\"")
                .replacingOnce(Hex.encode([UInt8]("u1".utf8)).string, Hex.encode([UInt8]("u7".utf8)).string)
            #expect(await fault(last, directory).contains("event 8 was altered"))
            // The whole export under another name, or with another end.
            #expect(await change(0, "\"acme\"", "\"acne\"").contains("event 1 was altered"))
            #expect(await change(9, "\"sequence\":8", "\"sequence\":7").contains("not as it was written"))
            #expect(await change(9, "\"signature\":\"", "\"signature\":\"00").contains("not signed"))
        }
    }

    @Test func `Events that were dropped, swapped, repeated or cut off are named`() async throws {
        try await withExport { _, directory, lines in
            func without(_ index: Int) -> [String] { Array(lines[..<index] + lines[(index + 1)...]) }
            // Dropped: the first, one in the middle, the last.
            #expect(await fault(without(1), directory).contains("event 1 is missing"))
            #expect(await fault(without(5), directory).contains("event 5 is missing"))
            #expect(await fault(without(8), directory).contains("event 8 is missing"))
            // Two events are swapped, and one is told twice.
            var swapped = lines
            swapped.swapAt(3, 4)
            #expect(await fault(swapped, directory).contains("event 3 is missing: event 4 stands in its place"))
            var twice = lines
            twice.insert(lines[4], at: 5)
            #expect(await fault(twice, directory).contains("event 4 stands where event 5 belongs"))
            // The export is cut off, and things stand behind its end.
            #expect(await fault(Array(lines.dropLast()), directory).contains("cut off behind event 8"))
            #expect(await fault([lines[0]], directory).contains("cut off at its beginning"))
            #expect(await fault(lines + [lines[8]], directory).contains("something follows the checkpoint"))
        }
    }

    @Test func `An event that was added with a sound chain is not under the signature`() async throws {
        try await withExport { server, directory, lines in
            // The log goes on, and somebody puts a genuine later event behind an end that was signed before.
            #expect(await TestConsole.run(["-t", "acme", "user", "delete", "u3"], on: server).code == .ok)
            let longer = "\(directory)/longer.ndjson"
            #expect(await TestConsole.run(["-t", "acme", "audit", "export", longer], on: server).code == .ok)
            let more = String(decoding: readFile(longer) ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
            var appended = lines
            appended.insert(more[9], at: 9)
            #expect(await fault(appended, directory).contains("event 9 was added"))
            // A later end in place of the export's own.
            #expect(await fault(lines.dropLast() + [more[10]], directory).contains("event 9 is missing"))
            // One export follows the other.
            let following = await verify(longer, directory, ["--previous", "\(directory)/acme.ndjson"])
            #expect(following.code == .ok, "\(following.said)")
            let proved = "it goes on from \(directory)/acme.ndjson, which ended with event 8: both are one log\n"
            #expect(following.said == proved, "\(following.said)")
            let back = await verify("\(directory)/acme.ndjson", directory, ["--previous", longer])
            #expect(back.code == .damaged && back.said.contains("had 9 in the previous export"), "\(back.said)")
            let part = "\(directory)/part.ndjson"
            let exported = await TestConsole.run(["-t", "acme", "audit", "export", part, "--after", "8"], on: server)
            #expect(exported.code == .ok, "\(exported.said)")
            #expect(await verify(part, directory).said.contains("event 1 is missing"))
            let joined = await verify(part, directory, ["--previous", "\(directory)/acme.ndjson"])
            #expect(joined.code == .ok, "\(joined.said)")
        }
    }

    @Test func `A previous export that is not linked with this one proves nothing, and is refused`() async throws {
        try await withExport { server, directory, _ in
            let acme = "\(directory)/acme.ndjson"
            for words in [
                ["tenant", "create", "beta"], ["-t", "beta", "audit", "export", "\(directory)/beta.ndjson"],
            ] {
                #expect(await TestConsole.run(words, on: server).code == .ok)
            }
            let other = await verify(acme, directory, ["--previous", "\(directory)/beta.ndjson"])
            #expect(other.code == .damaged && other.said.contains("is the log of tenant \"beta\""), "\(other.said)")
            // Between the two exports, events were deleted by age: the new export begins behind what the old one had.
            let old = "\(directory)/old.ndjson"
            #expect(await TestConsole.run(["-t", "beta", "audit", "export", old], on: server).code == .ok)
            let beta = "\(directory)/later.ndjson"
            for words in [
                ["tenant", "update", "beta", "--event-retention", "1d"],
                ["-t", "beta", "user", "create", "--uid", "u1"],
            ] {
                #expect(await TestConsole.run(words, on: server).code == .ok)
            }
            server.clock.advance(by: .days(2))
            #expect(await TestConsole.run(["-t", "beta", "user", "create", "--uid", "u2"], on: server).code == .ok)
            await server.project.sweep()
            #expect(await TestConsole.run(["-t", "beta", "audit", "export", beta], on: server).code == .ok)
            #expect(await verify(beta, directory).code == .ok)
            let apart = await verify(beta, directory, ["--previous", old])
            #expect(apart.code == .damaged && apart.said.contains("nothing links this export"), "\(apart.said)")
        }
    }

    @Test func `Another server's key, another tenant's log`() async throws {
        try await withExport { server, directory, lines in
            try await withServer { other in
                #expect(await TestConsole.run(["audit", "key", "\(directory)/other.pem"], on: other).code == .ok)
            }
            let test = TestConsole()
            let words = ["audit", "verify", "\(directory)/acme.ndjson", "--public-key", "\(directory)/other.pem"]
            #expect(await CommandLineTool.run(words, in: test.console) == .damaged)
            #expect(test.said.contains("not signed with the key"))
            #expect(await TestConsole.run(["tenant", "create", "beta"], on: server).code == .ok)
            let beta = "\(directory)/beta.ndjson"
            #expect(await TestConsole.run(["-t", "beta", "audit", "export", beta], on: server).code == .ok)
            let end = String(decoding: readFile(beta) ?? [], as: UTF8.self).split(separator: "\n").map(String.init).last
            #expect(await fault(lines.dropLast() + [end ?? ""], directory).contains("is for tenant \"beta\""))
        }
    }
}

extension String {
    fileprivate func replacingOnce(_ old: String, _ new: String) -> String {
        guard let place = range(of: old) else { return self }
        var text = self
        text.replaceSubrange(place, with: new)
        return text
    }

    fileprivate func range(of other: String) -> Range<Index>? { firstRange(of: other) }
}
