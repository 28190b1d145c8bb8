import Base
import Glibc
import TestSupport
import Testing

@testable import Store

@Suite struct WitnessTests {
    private func put(_ store: Store, _ number: Int) throws {
        try store.writeBlocking { try $0.put(blobs, [UInt8(number & 255), UInt8(number >> 8 & 255)], [1]) }
    }

    private func open(_ directory: String, _ configure: (inout StoreConfiguration) -> Void = { _ in }) throws -> Store {
        try openTestStore(at: directory, tables: testTables, configure)
    }

    /// Makes a store of five transactions without an event, and returns its data file.
    private func makeStore(
        _ directory: String, _ configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws -> [UInt8] {
        let store = try open(directory, configure)
        for number in 0..<5 { try put(store, number) }
        store.close()
        return contents(of: directory + "/data.mdb")
    }

    /// The newest meta page loses its number, or is as it was a commit ago: the disk lost a write.
    @Test(arguments: 1...12) func aStoreThatLostItsNewestTransactionIsRefused(commitCount: Int) throws {
        for isLostWrite in [false, true] {
            try withTemporaryDirectory { directory in
                let path = directory + "/data.mdb"
                let store = try open(directory)
                var before: [UInt8] = []
                for number in 0..<commitCount {
                    before = contents(of: path)
                    try put(store, number)
                }
                store.close()
                var damaged = contents(of: path)
                let newest = MetaPages.newest(damaged)
                if isLostWrite {
                    let page = newest * MetaPages.pageByteCount..<(newest + 1) * MetaPages.pageByteCount
                    damaged.replaceSubrange(page, with: before[page])
                } else {
                    MetaPages.damage(&damaged, newest)
                }
                write(damaged, to: path)
                #expect(throws: StoreError.self) { _ = try open(directory) }
                #expect(contents(of: path) == damaged)
                let error = #expect(throws: StoreError.self) { _ = try open(directory) }
                guard case .rolledBack(.behind(let position, let witness)) = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
                #expect(position == witness - 1)
            }
        }
    }

    /// The older meta page claims the higher number: LMDB takes it, but its number proves nothing.
    @Test func anOlderMetaPageThatClaimsToBeNewerIsRefused() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            let store = try open(directory)
            for number in 0..<5 { try store.writeBlocking { try $0.appendEvent(tenant: "a", [UInt8(number)]) } }
            store.close()
            var damaged = contents(of: path)
            let older = 1 - MetaPages.newest(damaged)
            MetaPages.set(&damaged, older, MetaPages.transaction(damaged, older) | 1 << 20)
            write(damaged, to: path)
            #expect(throws: StoreError.rolledBack(.eventsBehind(store: 4, witness: 5))) { _ = try open(directory) }
        }
    }

    /// As above, but the last transaction wrote no event: only the two numbers themselves tell.
    @Test(arguments: 0..<64) func anOlderMetaPageWithOneFlippedBitIsRefused(bit: Int) async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            var damaged = try makeStore(directory)
            let newest = MetaPages.newest(damaged)
            let number = MetaPages.transaction(damaged, 1 - newest) ^ 1 << UInt64(bit)
            let isRefused = number >= MetaPages.transaction(damaged, newest)
            MetaPages.set(&damaged, 1 - newest, number)
            write(damaged, to: path)
            guard isRefused else {
                // The witness says that nothing is missing.
                let store = try open(directory)
                #expect(try store.read { try $0.get(blobs, [4, 0]) } == [1])
                return Self.close(store)
            }
            guard number < 1 << 56 else {
                #expect(throws: StoreError.damaged(operation: "meta page")) { _ = try open(directory) }
                return
            }
            #expect {
                _ = try open(directory)
            } throws: {
                if case StoreError.rolledBack(.metaPagesApart) = $0 { true } else { false }
            }
            let accepted = try open(directory) { $0.acceptsRollback = true }
            try await accepted.acceptRollback { try $0.put(blobs, [9, 9, 9], [1]) }
            Self.close(accepted)
            Self.close(try open(directory))
        }
    }

    /// A release with a new table commits when it opens the store: that commit is not the missing transaction.
    @Test(arguments: [false, true]) func anUpgradeHidesNoRollback(isOlderPageRaised: Bool) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            var damaged = try makeStore(directory) { $0.tables = [blobs.declaration] }
            let newest = MetaPages.newest(damaged)
            if isOlderPageRaised {
                MetaPages.set(&damaged, 1 - newest, MetaPages.transaction(damaged, 1 - newest) | 1 << 20)
            } else {
                MetaPages.damage(&damaged, newest)
            }
            write(damaged, to: path)
            // The first refusal must not have written anything that the second start takes for the missing transaction.
            for _ in 0..<2 {
                let error = #expect(throws: StoreError.self) { try open(directory).close() }
                switch error {
                case .rolledBack(.behind): #expect(!isOlderPageRaised)
                case .rolledBack(.metaPagesApart): #expect(isOlderPageRaised)
                default: Issue.record("\(String(describing: error))")
                }
                #expect(contents(of: path) == damaged)
            }
        }
    }

    @Test func anAcceptedRollbackGoesOnAndIsNotAskedAgain() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            let whole = try makeStore(directory)
            var damaged = whole
            MetaPages.damage(&damaged, MetaPages.newest(damaged))
            write(damaged, to: path)
            let accepted = try open(directory) { $0.acceptsRollback = true }
            #expect(accepted.rollback != nil)
            try await accepted.acceptRollback { try $0.put(blobs, [9, 9, 9], [1]) }
            #expect(accepted.rollback == nil)
            Self.close(accepted)
            let later = try open(directory)
            #expect(later.rollback == nil)
            #expect(try later.read { try $0.get(blobs, [9, 9, 9]) } == [1])
            Self.close(later)
            // The file from before was made under another id.
            write(whole, to: path)
            #expect(throws: StoreError.rolledBack(.witnessForeign)) { _ = try open(directory) }
        }
    }

    @Test func whereDurabilityIsRelaxedAStoreGoesOnAndSaysSo() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/data.mdb"
            var damaged = try makeStore(directory) { $0.durability = .relaxed }
            MetaPages.damage(&damaged, MetaPages.newest(damaged))
            write(damaged, to: path)
            #expect(throws: StoreError.self) { _ = try open(directory) }
            let relaxed = try open(directory) { $0.durability = .relaxed }
            guard case .behind = relaxed.rollback else {
                Issue.record("\(String(describing: relaxed.rollback))")
                return
            }
            relaxed.close()
        }
    }

    @Test func aStoreWithoutTheWitnessItHadIsRefused() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/witness"
            let store = try open(directory)
            try put(store, 1)
            store.close()
            let whole = contents(of: path)
            unlink(path)
            #expect(throws: StoreError.rolledBack(.witnessMissing)) { _ = try open(directory) }
            var random = SeededGenerator(seed: 1)
            for bytes in [[], [1], Array(whole[..<20]), random.bytes(whole.count)] {
                write(bytes, to: path)
                #expect(throws: StoreError.rolledBack(.witnessMissing)) { _ = try open(directory) }
            }
            write(whole, to: path)
            try open(directory).close()
        }
    }

    /// One slot may be torn or damaged: the other slot is enough.
    @Test func everyDamagedByteOfTheWitnessLeavesTheStoreUsable() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/witness"
            let store = try open(directory)
            try put(store, 1)
            store.close()
            let whole = contents(of: path)
            for offset in [0, 4_096] {
                for index in offset..<min(offset + 64, whole.count) {
                    var damaged = whole
                    damaged[index] ^= 0x40
                    write(damaged, to: path)
                    try open(directory).close()
                }
            }
        }
    }

    /// A kill leaves the files as they are at any moment when a write is acknowledged, in both orders.
    @Test(arguments: [Durability.synced, .relaxed])
    func aKilledStoreIsNeverBehindItsWitness(durability: Durability) throws {
        try withTemporaryDirectory { directory in
            let store = try open(directory + "/a") { $0.durability = durability }
            defer { store.close() }
            mkdir(directory + "/b", 0o700)
            for number in 0..<30 {
                try put(store, number)
                write(contents(of: directory + "/a/witness"), to: directory + "/b/witness")
                write(contents(of: directory + "/a/data.mdb"), to: directory + "/b/data.mdb")
                try open(directory + "/b").close()
            }
        }
    }

    /// A store from before there were witnesses gets one.
    @Test func aStoreThatNeverHadAWitnessGetsOne() throws {
        try withTemporaryDirectory { directory in
            let store = try open(directory)
            try store.writeBlocking { _ = try $0.delete(Schema.meta, Store.witnessKey) }
            store.close()
            unlink(directory + "/witness")
            try open(directory).close()
            #expect(access(directory + "/witness", F_OK) == 0)
            unlink(directory + "/witness")
            #expect(throws: StoreError.rolledBack(.witnessMissing)) { _ = try open(directory) }
        }
    }

    @Test func aDataFileThatIsGoneIsNotMadeAgain() throws {
        try withTemporaryDirectory { directory in
            try open(directory).close()
            unlink(directory + "/data.mdb")
            #expect(throws: StoreError.missing) { _ = try open(directory) }
            #expect(access(directory + "/data.mdb", F_OK) != 0)
        }
    }

    /// Nobody gets in by deleting our lock file, or by having the data file in another directory, too.
    @Test func aSecondOpenIsRefusedWithoutTheLockFile() throws {
        try withTemporaryDirectory { directory in
            let store = try open(directory + "/a")
            defer { store.close() }
            unlink(directory + "/a/lock")
            #expect(throws: StoreError.inUse) { _ = try open(directory + "/a") }
            mkdir(directory + "/b", 0o700)
            #expect(link(directory + "/a/data.mdb", directory + "/b/data.mdb") == 0)
            #expect(throws: StoreError.inUse) { _ = try open(directory + "/b") }
        }
    }

    /// Closing blocks for a moment.
    private static func close(_ store: Store) { store.close() }
}
