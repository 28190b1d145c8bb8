import Base
import Crypto
import Glibc
import JSON
import TestSupport
import Testing

@testable import postern

/// postern backup, against a real server and a real posternd.
@Suite struct BackupCommandsTests {
    private func run(_ words: [String], answers: [String] = []) async -> TestConsole.Outcome {
        let test = TestConsole(answers: answers)
        let program = ["--posternd", ChildProcess.built("posternd")]
        return (await CommandLineTool.run(words + program, in: test.console), test.written, test.said)
    }

    @Test func `A backup is created, verified, and restored when its word is typed`() async throws {
        try await withTemporaryDirectory { directory in
            let masterKey = MasterKey.generate(random: .system)
            let (data, file) = (directory + "/data", directory + "/postern.backup")
            let adminKey = try await withServer(
                directory: data, clock: ManualClock(), masterKey: masterKey
            ) { server in
                #expect(await TestConsole.run(["tenant", "create", "acme"], on: server).code == .ok)
                let created = await TestConsole.run(["backup", "create", file], on: server)
                #expect(created.code == .ok && created.said.contains("\(file): "), "\(created.said)")
                let again = await TestConsole.run(["backup", "create", file], on: server)
                #expect(again.code == .usage && again.said.contains("exists already"))
                // A server runs: the command says so before it asks anything, and does not take the answer.
                let early = await run(["backup", "restore", file, "--data-directory", data], answers: ["restore"])
                #expect(early.code == .general && !early.said.contains("This puts"), "\(early.said)")
                #expect(!early.written.contains("sound"))
                return server.adminKey
            }
            writeFile("\(data)/master-key", masterKey.export().withBytes { Hex.encode($0).bytes })
            #expect(chmod("\(data)/master-key", 0o600) == 0)
            let place = [file, "--data-directory", data]
            let verified = await run(["backup", "verify"] + place)
            #expect(verified.code == .ok && verified.written.contains("The backup is sound"), "\(verified.written)")
            let record = await run(["backup", "verify", "-o", "json"] + place)
            let json = try JSONValue(parsing: [UInt8](record.written.utf8))
            #expect(json["sound"]?.bool == true)
            #expect(json["lines"]?.array?.count == verified.written.split(separator: "\n").count)
            let declined = await run(["backup", "restore"] + place, answers: ["no"])
            #expect(declined.code == .declined)
            let restored = await run(["backup", "restore"] + place, answers: ["restore"])
            #expect(restored.code == .ok && restored.written.contains("Restored."), "\(restored.said)")
            #expect(restored.written.split(separator: "\n").count { $0.contains("The backup is sound") } == 1)
            // The log tells of a restore, but not of a store that was tampered with.
            try await withServer(directory: data, clock: ManualClock(), masterKey: masterKey, adminKey: adminKey) {
                let events = await TestConsole.run(["-t", "", "audit", "list", "-o", "json"], on: $0)
                #expect(events.written.contains("EVENT_KIND_BACKUP_RESTORED"), "\(events.said)")
                #expect(events.written.contains("by an operator, from the backup of"))
                #expect(!events.written.contains("STORE_ROLLED_BACK"))
            }
            writeFile(file, [1, 2, 3])
            let refused = await run(["backup", "verify", "-o", "json"] + place)
            #expect(refused.code == .damaged && refused.said.contains("cannot be restored"), "\(refused.said)")
            #expect(try JSONValue(parsing: [UInt8](refused.written.utf8))["sound"]?.bool == false)
        }
    }

    @Test func `A backup may go to standard output, but not to a terminal`() async throws {
        try await withTemporaryDirectory { directory in
            let masterKey = MasterKey.generate(random: .system)
            let (data, file) = (directory + "/data", directory + "/piped.backup")
            try await withServer(directory: data, clock: ManualClock(), masterKey: masterKey) { server in
                let test = TestConsole()
                let words = TestConsole.globals(for: server) + ["backup", "create", "-"]
                #expect(await CommandLineTool.run(words, in: test.console) == .ok, "\(test.said)")
                writeFile(file, test.writtenBytes)
                var terminal = test.console
                terminal.outputIsForTerminal = true
                #expect(await CommandLineTool.run(words, in: terminal) == .usage)
            }
            writeFile("\(data)/master-key", masterKey.export().withBytes { Hex.encode($0).bytes })
            #expect(chmod("\(data)/master-key", 0o600) == 0)
            let verified = await run(["backup", "verify", file, "--data-directory", data])
            #expect(verified.code == .ok && verified.written.contains("The backup is sound"), "\(verified.said)")
        }
    }
}
