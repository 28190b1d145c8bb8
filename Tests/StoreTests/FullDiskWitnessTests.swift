import Base
import Glibc
import TestSupport
import Testing

@testable import Store

/// A new witness for a store whose disk has no room for another file.
@Suite struct FullDiskWitnessTests {
    private static func put(_ store: Store, _ number: Int) throws {
        try store.writeBlocking { try $0.put(blobs, [UInt8(number & 255)], [1]) }
    }

    private func open(_ directory: String) throws -> Store { try openTestStore(at: directory, tables: testTables) }

    /// An operator who accepts a rollback of a store on a full disk wants to make room in it.
    @Test(arguments: [ENOSPC, EDQUOT]) func aFullDiskTakesANewWitnessInThePlaceOfThePresentOne(code: Int32) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/witness"
            let authenticator = TestAuthenticator()
            let full = { (path: String, bytes: [UInt8]) throws(FileError) -> Void in
                // What fitted of the new file.
                write(Array(bytes.prefix(20)), to: path + ".new")
                throw FileError(path: path, call: "write", code: code)
            }
            func begin(_ number: UInt8, transaction: UInt64) throws {
                let position = Witness.Position(transaction: transaction, event: 1)
                try Witness(
                    directory: directory, storeID: [UInt8](repeating: number, count: 16), position: position,
                    authenticator: authenticator, failures: Counter(), replacing: full
                ).close()
            }
            #expect(throws: StoreError.full) { try begin(1, transaction: 9) }
            let store = try open(directory)
            for number in 0..<20 { try Self.put(store, number) }
            store.close()
            let size = contents(of: path).count
            // The store is behind its witness.
            try begin(2, transaction: 3)
            let found = try Witness.read(directory, authenticator: authenticator)
            let expected = Witness.Position(transaction: 3, event: 1)
            #expect(found == .found(storeID: [UInt8](repeating: 2, count: 16), position: expected))
            #expect(contents(of: path).count == size && access(path + ".new", F_OK) != 0)
        }
    }

    /// The disk is full, and the machine stops after the first of the two slots was overwritten: the start is refused
    /// as before. The slots change places with each commit.
    @Test(arguments: [false, true]) func aWitnessThatWasHalfOverwrittenIsRefused(isOneMore: Bool) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/witness"
            let store = try open(directory)
            for number in 0..<(isOneMore ? 6 : 5) { try Self.put(store, number) }
            store.close()
            var damaged = contents(of: directory + "/data.mdb")
            let newest = MetaPages.newest(damaged)
            let transaction = MetaPages.transaction(damaged, newest)
            MetaPages.damage(&damaged, newest)
            write(damaged, to: directory + "/data.mdb")
            let file = Glibc.open(path, O_RDONLY)
            let offsets = Witness.offsetsOldestFirst(file, TestAuthenticator()).map { Int($0) }
            Glibc.close(file)
            var half = contents(of: path)
            // The position of the store without its newest transaction.
            let position = Witness.Position(transaction: transaction - 1, event: 0)
            let other = try Witness(
                directory: directory, storeID: [UInt8](repeating: 2, count: 16), position: position,
                authenticator: TestAuthenticator(), failures: Counter())
            other.close()
            let first = try #require(offsets.first)
            half.replaceSubrange(first..<first + 56, with: contents(of: path)[first..<first + 56])
            write(half, to: path)
            let error = #expect(throws: StoreError.self) { _ = try open(directory) }
            guard case .rolledBack(.behind) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }
}
