import Base
import Crypto
import Glibc
import Identity
import Store
import TestSupport
import Testing

@testable import postern

/// A real store whose log was changed by somebody who has the master key, so that every record has its MAC. The
/// command `store verify` finds the change, and so does the verification of an export with a key from before.
@Suite struct TamperedLogTests {
    enum Change: String, CaseIterable {
        case altered, dropped, swapped, appended, truncated
    }

    /// The store's own table, by its number.
    private static let events = Table<[UInt8], [UInt8]>(
        id: 2, name: "events", owner: .keyPrefix, purge: .otherwise("a test's"))

    private static func key(_ sequence: UInt8) -> [UInt8] {
        [UInt8]("acme".utf8) + [0, 0, 0, 0, 0, 0, 0, 0, sequence]
    }

    private static func make(_ change: Change, _ transaction: borrowing WriteTransaction) throws {
        func row(_ sequence: UInt8) throws -> [UInt8] { try #require(try transaction.get(events, key(sequence))) }
        switch change {
        case .altered:
            var record = try row(3)
            record[record.count - 1] ^= 1
            try transaction.put(events, key(3), record)
        case .dropped: try transaction.delete(events, key(3))
        case .swapped:
            let (third, fourth) = (try row(3), try row(4))
            try transaction.put(events, key(3), fourth)
            try transaction.put(events, key(4), third)
        case .appended: try transaction.put(events, key(7), try row(6))
        case .truncated: try transaction.delete(events, key(6))
        }
    }

    @Test(arguments: Change.allCases)
    func `A log that was changed in the store is found`(_ change: Change) async throws {
        try await withTemporaryDirectory { directory in
            let masterKey = MasterKey.generate(random: .system)
            let data = directory + "/data"
            try await withServer(directory: data, clock: ManualClock(), masterKey: masterKey) { server in
                let users = (1...5).map { ["-t", "acme", "user", "create", "--uid", "u\($0)"] }
                for words in [["tenant", "create", "acme"]] + users + [["audit", "key", "\(directory)/key.pem"]] {
                    #expect(await TestConsole.run(words, on: server).code == .ok)
                }
                try await server.project.store.write { try Self.make(change, $0) }
                try await Self.checkExport(change, directory, server)
            }
            writeFile("\(data)/master-key", masterKey.export().withBytes { Hex.encode($0).bytes })
            #expect(chmod("\(data)/master-key", 0o600) == 0)
            let test = TestConsole()
            let words = ["store", "verify", "--data-directory", data, "--posternd", ChildProcess.built("posternd")]
            #expect(await CommandLineTool.run(words, in: test.console) == .damaged)
            // The finding names the event, or the one before it, which it does not fit.
            let named = [Change.altered: 3, .dropped: 3, .swapped: 2, .appended: 6, .truncated: 6][change] ?? 0
            let finding = test.written.split(separator: "\n").first { $0.contains("broken chain") }
            #expect(finding?.hasSuffix("event \(named))") == true, "\(test.written)")
        }
    }

    /// The server itself exports what it has; the signed head is the one from before.
    private static func checkExport(_ change: Change, _ directory: String, _ server: TestServer) async throws {
        let file = "\(directory)/acme.ndjson"
        let exported = await TestConsole.run(["-t", "acme", "audit", "export", file], on: server)
        switch change {
        case .dropped, .truncated:
            #expect(exported.code != .ok && exported.said.contains("event "), "\(exported.said)")
        case .appended:
            // Events behind the head that the server signs are not part of the log.
            #expect(exported.code == .ok)
        case .altered, .swapped:
            let test = TestConsole()
            let words = ["audit", "verify", file, "--public-key", "\(directory)/key.pem"]
            #expect(await CommandLineTool.run(words, in: test.console) == .damaged)
            let named = change == .altered ? "event 3 was altered" : "event 2 was altered"
            #expect(test.said.contains(named), "\(test.said)")
        }
    }
}
