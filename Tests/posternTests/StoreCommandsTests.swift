import Base
import Crypto
import Glibc
import JSON
import TestSupport
import Testing

@testable import postern

/// postern store, against a real posternd and the data of a server that is stopped.
@Suite struct StoreCommandsTests {
    private func verify(_ directory: String, _ words: String...) async -> TestConsole.Outcome {
        let test = TestConsole()
        let all = ["store", "verify", "--data-directory", directory, "--posternd", ChildProcess.built("posternd")]
        return (await CommandLineTool.run(all + words, in: test.console), test.written, test.said)
    }

    /// The data of a server that had a tenant, and the key that reads it.
    private func withStoppedServer(_ body: (String) async throws -> Void) async throws {
        try await withTemporaryDirectory { directory in
            let masterKey = MasterKey.generate(random: .system)
            try await withServer(directory: directory, clock: ManualClock(), masterKey: masterKey) { server in
                #expect(await TestConsole.run(["tenant", "create", "acme"], on: server).code == .ok)
                let running = await verify(directory)
                #expect(running.code == .general && running.said.contains("could not verify the store"))
            }
            writeFile("\(directory)/master-key", masterKey.export().withBytes { Hex.encode($0).bytes })
            #expect(chmod("\(directory)/master-key", 0o600) == 0)
            try await body(directory)
        }
    }

    @Test func `A sound store is said to be sound, in every format`() async throws {
        try await withStoppedServer { directory in
            let table = await verify(directory)
            #expect(table.code == .ok && table.said.isEmpty)
            #expect(table.written.contains("\ntenants: 2 rows\n"), "\(table.written)")
            #expect(table.written.hasSuffix("\nsound: pages, MACs, witness, events, sums and indexes\n"))
            let json = try JSONValue(parsing: [UInt8](await verify(directory, "-o", "json").written.utf8))
            #expect(json["sound"] == true)
            #expect(json["lines"]?.array?.count == table.written.split(separator: "\n").count)
            #expect(await verify(directory, "-q").written == "sound\n")
        }
    }

    @Test func `A damaged store has an exit code of its own, and the report says what is damaged`() async throws {
        try await withStoppedServer { directory in
            var file = readFile("\(directory)/data.mdb") ?? []
            // The heads of some pages are damaged, behind the two meta pages.
            for page in 2..<min(20, file.count / 4_096) {
                for index in 0..<16 { file[page * 4_096 + index] = 0xFF }
            }
            writeFile("\(directory)/data.mdb", file)
            let found = await verify(directory, "-o", "json")
            #expect(found.code == .damaged && found.code.rawValue == 65)
            #expect(found.said.contains("the store is damaged"))
            let json = try JSONValue(parsing: [UInt8](found.written.utf8))
            #expect(json["sound"] == false)
        }
    }

    @Test func `Without the server's program the command says how to name it`() async throws {
        let test = TestConsole()
        #expect(await test.run("store", "verify", "--posternd", "/nonexistent/posternd") == .general)
        #expect(test.said.contains("--posternd FILE"))
        #expect(LocalProgram.path(of: "no-such-program") == "no-such-program")
    }
}
