import Base
import Glibc
import Messages
import TestSupport
import Testing

@testable import postern

/// An export that goes on where an earlier one stopped.
@Suite struct ExportResumeTests {
    private static func spec(_ name: Text, rounds: Int32) -> NamedHashSpec {
        let firebase = FirebaseScryptSpec(
            signerKey: Secret([1, 2, 3]), saltSeparator: [7], rounds: rounds, memoryCost: 14)
        return NamedHashSpec(name: name, spec: PasswordHashSpec(algorithm: .firebaseScrypt(firebase)))
    }

    private static func user(_ uid: Text, spec: Text) -> ImportUser {
        var user = ImportUser(uid: uid)
        (user.passwordHash, user.salt, user.hashSpec) = (Secret([1, 2, 3]), [4], spec)
        return user
    }

    @Test func `A Firebase file keeps one set of hash parameters`() {
        let algorithm = HashAlgorithm(of: Self.spec("a", rounds: 8).spec)
        var first = UserFileWriter(format: .firebaseJSON, algorithm: algorithm)
        _ = first.lines(of: Self.spec("a", rounds: 8))
        _ = first.line(Self.user("ann", spec: "a"), isFirst: true)
        _ = first.line(Self.user("bob", spec: "b"), isFirst: false)
        var second = UserFileWriter(format: .firebaseJSON, algorithm: algorithm, state: first.state)
        // The rest of the users begins with the other parameters.
        _ = second.lines(of: Self.spec("b", rounds: 4))
        let left = second.line(Self.user("carl", spec: "b"), isFirst: false)
        #expect(!String(decoding: left, as: UTF8.self).contains("passwordHash"))
        _ = second.lines(of: Self.spec("a", rounds: 8))
        let kept = second.line(Self.user("dora", spec: "a"), isFirst: false)
        #expect(String(decoding: kept, as: UTF8.self).contains("passwordHash"))
        #expect(
            second.notes == [
                "the hashes were made with --hash-algo scrypt --hash-key AQID --salt-separator Bw== --rounds 8 "
                    + "--mem-cost 14",
                "2 password hashes of other algorithms were left out",
            ])
    }

    @Test func `A spec is in a file of ours once: an import takes it only once`() {
        var first = UserFileWriter(format: .ndjson, algorithm: nil)
        #expect(!first.lines(of: Self.spec("a", rounds: 8)).isEmpty)
        var second = UserFileWriter(format: .ndjson, algorithm: nil, state: first.state)
        #expect(second.lines(of: Self.spec("a", rounds: 8)).isEmpty)
        #expect(!second.lines(of: Self.spec("b", rounds: 4)).isEmpty)
    }

    @Test func `The place is read as it was noted, and is of one form`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/users.json.resume"
            let tenant = ServedTenant(server: "a:7400", tenantID: "acme")
            let place = ExportRun.Place(
                tenant: tenant, cursor: "c", byteCount: 10, userCount: 2, format: "firebase-json", algorithm: "scrypt",
                writer: UserFileWriter.State(
                    specNames: ["a"], parameters: ["--hash-algo scrypt"], hashesLeftOut: 3, providersLeftOut: 4))
            writeFile(path, place.encoded())
            let read = try ExportRun.Place(reading: path)
            #expect(read == place)
            let (scrypt, other) = (try HashAlgorithm(named: "scrypt"), try HashAlgorithm(named: "bcrypt"))
            try read.check(tenant, .firebaseJSON, scrypt, path: path)
            for (format, algorithm) in [
                (.firebaseJSON, other), (.firebaseJSON, nil), (.ndjson, scrypt),
            ] as [(UserFileFormat, HashAlgorithm?)] {
                let error = #expect(throws: CommandError.self) {
                    try read.check(tenant, format, algorithm, path: path)
                }
                #expect(error?.hint == "go on with --format firebase-json --hash-algo scrypt")
            }
            writeFile(path, [UInt8](#"{"cursor":"c","bytes":10,"users":2}"#.utf8))
            let former = #expect(throws: CommandError.self) { try ExportRun.Place(reading: path) }
            #expect(former?.message.contains("an earlier version wrote it") == true)
        }
    }

    @Test func `An export that is refused leaves no file, and a file that is there says how to go on`() async throws {
        try await withServer { server in
            let file = "\(server.directory)/users.json"
            let export = ["user", "export", file]
            let refused = await TestConsole.run(["-t", "nowhere"] + export, on: server)
            #expect(refused.code == .notFound && !File.exists(file), "\(refused.said)")
            #expect(!refused.said.contains("--resume"))
            #expect(await TestConsole.run(export, on: server).code == .ok)
            let again = await TestConsole.run(export, on: server)
            #expect(again.code == .usage && again.said.contains("name another one"), "\(again.said)")
            writeFile("\(file).resume", [])
            let stopped = await TestConsole.run(export, on: server)
            #expect(stopped.code == .usage && stopped.said.contains("--resume goes on"), "\(stopped.said)")
        }
    }

    @Test func `An export of another tenant, or from another server, does not go on`() async throws {
        try await withServer { server in
            for tenant in ["acme", "beta"] {
                #expect(await TestConsole.run(["tenant", "create", tenant], on: server).code == .ok)
            }
            let file = "\(server.directory)/users.ndjson"
            let begun = [UInt8]("begun".utf8)
            func resume(_ tenant: String, after noted: ServedTenant) async -> TestConsole.Outcome {
                writeFile(file, begun)
                writeFile("\(file).resume", ExportRun.Place(tenant: noted, byteCount: 0, format: "ndjson").encoded())
                return await TestConsole.run(["-t", tenant, "user", "export", file, "--resume"], on: server)
            }
            let here = ServedTenant(server: "127.0.0.1:\(server.port)", tenantID: "acme")
            let elsewhere = ServedTenant(server: "127.0.0.1:1", tenantID: "acme")
            for (tenant, noted) in [("beta", here), ("", here), ("acme", elsewhere)] {
                let refused = await resume(tenant, after: noted)
                let message = "\(file).resume: is of an export of tenant acme on \(noted.server); name another file"
                #expect(refused.code == .usage && refused.said.contains(message), "\(refused.said)")
                #expect(readFile(file) == begun)
            }
            let before = ServedTenant(server: here.server, tenantID: "acme", historyID: "another")
            let restored = await resume("acme", after: before)
            #expect(restored.code == .usage && restored.said.contains("a backup was restored"), "\(restored.said)")
            #expect(readFile(file) == begun)
            let done = await resume("acme", after: here)
            #expect(done.code == .ok && !File.exists("\(file).resume"), "\(done.said)")
            #expect(readFile(file) == UserLines.header(tenantID: "acme") + UserLines.end(userCount: 0))
        }
    }

    @Test func `An export does not go on in a file that lacks noted users`() async throws {
        try await withServer { server in
            let file = "\(server.directory)/users.ndjson"
            let tenant = ServedTenant(server: "127.0.0.1:\(server.port)", tenantID: .empty)
            let place = ExportRun.Place(tenant: tenant, byteCount: 6, userCount: 1, format: "ndjson").encoded()
            for begun in ["", "begun"] {
                writeFile(file, [UInt8](begun.utf8))
                writeFile("\(file).resume", place)
                let refused = await TestConsole.run(["user", "export", file, "--resume"], on: server)
                #expect(refused.code == .usage && refused.said.contains("has \(begun.utf8.count) bytes"), "\(refused)")
                #expect(readFile(file) == [UInt8](begun.utf8) && readFile("\(file).resume") == place)
            }
        }
    }
}
