import Base
import TestSupport
import Testing

@testable import Store

@Suite struct ExpiryTests {
    /// A slice ends by its time only where the test is about that.
    private static func withStore(
        sliceTime: Duration = .seconds(3_600), _ body: (Store) async throws -> Void
    ) async throws {
        try await withTemporaryStore(tables: testTables) {
            $0.limits.writeBatchTimeMax = sliceTime
        } _: { store in
            try await body(store)
        }
    }

    private func put(_ store: Store, _ id: UInt8, at time: Int64, _ record: EndingRecord = EndingRecord()) throws {
        try store.writeBlocking { transaction in
            try transaction.put(ending, [id], record)
            try transaction.scheduleExpiry(at: Timestamp(microseconds: time), ending, [id])
        }
    }

    private func sweep(_ store: Store, _ time: Int64, limit: Int = 100) async throws -> Int {
        try await store.sweep(now: Timestamp(microseconds: time), limit: limit).count
    }

    @Test func whatIsDueIsSweptInSlices() async throws {
        try await Self.withStore { store in
            for (id, time) in [(1, 300), (2, 100), (3, 200), (4, 400), (5, -7)] as [(UInt8, Int64)] {
                try put(store, id, at: time)
            }
            #expect(try await sweep(store, 0) == 1)
            #expect(try await sweep(store, 300, limit: 2) == 2)
            #expect(try store.read { try $0.exists(ending, [1]) })
            #expect(try await sweep(store, 300, limit: 2) == 1)
            #expect(try await sweep(store, 300, limit: 2) == 0)
            #expect(try store.read { try $0.count(ending) } == 1)
            #expect(try await sweep(store, .max) == 1)
            #expect(try store.read { try $0.count(ending) } == 0)
        }
    }

    /// Records may be large: their number alone does not bound the time of a write, for which all others wait.
    @Test func aSliceEndsWithItsTimeAndDeletesOnlyTheRowsOfWhatItDealtWith() async throws {
        try await Self.withStore(sliceTime: .milliseconds(1)) { store in
            for id in 1...4 as ClosedRange<UInt8> { try put(store, id, at: Int64(id), EndingRecord(.takesLong)) }
            for number in 1...4 {
                let slice = try await store.sweep(now: Timestamp(microseconds: 9), limit: 100)
                #expect(slice == WriteSlice(count: 1, isMore: number < 4))
                #expect(try store.read { try $0.count(ending) } == 4 - number)
            }
            #expect(try await sweep(store, 9) == 0)
        }
    }

    /// A full store takes slices that are smaller than the limit, and a damaged record is dealt with alone: neither
    /// means that the rest has to wait for the next sweep.
    @Test func aSliceThatIsSmallerThanTheLimitSaysWhetherThereIsMore() async throws {
        try await Self.withStore { store in
            for id in 1...5 as ClosedRange<UInt8> { try put(store, id, at: Int64(id)) }
            var slices: [WriteSlice] = []
            for limit in [2, 2, 2] {
                slices.append(try await store.sweep(now: Timestamp(microseconds: 9), limit: limit))
            }
            let expected = [(2, true), (2, true), (1, false)].map { WriteSlice(count: $0.0, isMore: $0.1) }
            #expect(slices == expected)
        }
    }

    @Test func aCancelledExpiryIsNotSwept() async throws {
        try await Self.withStore { store in
            try put(store, 1, at: 100)
            let cancelled = try await store.write { transaction in
                [
                    try transaction.cancelExpiry(at: Timestamp(microseconds: 99), ending, [1]),
                    try transaction.cancelExpiry(at: Timestamp(microseconds: 100), ending, [1]),
                ]
            }
            #expect(cancelled == [false, true])
            #expect(try await sweep(store, 1_000) == 0)
        }
    }

    @Test func aRecordThatThrowsLeavesEverythingScheduled() async throws {
        try await Self.withStore { store in
            try put(store, 1, at: 100)
            try put(store, 2, at: 100, EndingRecord(.fails))
            await #expect(throws: EndingRecord.Failed.self) { try await sweep(store, 100) }
            #expect(try store.read { try $0.count(ending) } == 2)
            try put(store, 2, at: 100)
            #expect(try await sweep(store, 100) == 2)
        }
    }

    @Test func aDamagedRecordStaysAndDoesNotKeepTheOthers() async throws {
        try await Self.withStore { store in
            for id in 1...5 as ClosedRange<UInt8> { try put(store, id, at: 100 * Int64(id)) }
            let asBytes = Table<[UInt8], [UInt8]>(id: 18, name: "ending", owner: .nobody, purge: .noTenant)
            try await store.write { try $0.put(asBytes, [2], [1]) }
            let damaged = Counter()
            let slice = try await store.sweep(now: Timestamp(microseconds: 1_000), limit: 100) { error in
                #expect(error == .corrupt(table: "ending"))
                damaged.add()
            }
            #expect(slice == WriteSlice(count: 5, isMore: false) && damaged.value == 1)
            #expect(try store.read { try $0.count(ending) } == 1)
            #expect(try await sweep(store, 1_000) == 0)
            try await store.write { try $0.put(ending, [2], EndingRecord()) }
            #expect(try await sweep(store, 1_000 + Duration.days(1).microseconds) == 1)
            #expect(try store.read { try $0.count(ending) } == 0)
        }
    }

    @Test func aDamagedRowOfTheScheduleIsDroppedAndDoesNotKeepTheOthers() async throws {
        try await Self.withStore { store in
            for id in 1...3 as ClosedRange<UInt8> { try put(store, id, at: 100 * Int64(id)) }
            // A key without a time, which comes before all others.
            let schedule = Table<[UInt8], [UInt8]>(id: 1, name: "expiry", owner: .nobody, purge: .noTenant)
            try await store.write { try $0.put(schedule, [0], []) }
            let damaged = Counter()
            let slice = try await store.sweep(now: Timestamp(microseconds: 1_000), limit: 100) { error in
                #expect(error == .corrupt(table: "expiry"))
                damaged.add()
            }
            #expect(slice == WriteSlice(count: 4, isMore: false) && damaged.value == 1)
            #expect(try store.read { try $0.count(ending) } == 0)
            #expect(try await sweep(store, 1_000) == 0)
        }
    }

    /// The other node has the row as it was put.
    @Test func `A node of a cluster passes over a damaged row of the schedule, and another node sweeps it`()
        async throws
    {
        try await withJournaledNodes(2, { $0.limits.writeBatchTimeMax = .seconds(3_600) }) { cluster in
            let (first, second) = (cluster.nodes[0].store, cluster.nodes[1].store)
            for id in 1...3 as ClosedRange<UInt8> {
                try await first.write { transaction in
                    try transaction.put(ending, [id], EndingRecord())
                    try transaction.scheduleExpiry(at: Timestamp(microseconds: 100 * Int64(id)), ending, [id])
                }
            }
            try await cluster.catchUp()
            try await second.write { transaction in
                let row = ExpiryKey(time: Timestamp(microseconds: 200), tableID: ending.id, key: [2])
                try Self.damage(row, transaction)
            }
            let damaged = Counter()
            let passed = Counter()
            let slice = try await second.sweep(now: Timestamp(microseconds: 1_000), limit: 100) { _ in
                damaged.add()
            } onPassedRow: { table in
                #expect(table == "expiry")
                passed.add()
            }
            #expect(slice == WriteSlice(count: 2, isMore: false))
            #expect(damaged.value == 0 && passed.value == 1)
            try await cluster.catchUp()
            let ids: [UInt8] = [1, 2, 3]
            let left = try first.read { transaction in try ids.filter { try transaction.exists(ending, [$0]) } }
            #expect(left == [2])
            #expect(try await sweep(first, 1_000) == 1)
            try await cluster.catchUp()
            for store in [first, second] {
                #expect(try store.read { try $0.count(ending) } == 0)
                #expect(try store.read { try $0.count(Schema.expiry) } == 0)
            }
        }
    }

    @Test func `A record that is damaged on one node of a cluster goes when another node sweeps`() async throws {
        try await withJournaledNodes(2, { $0.limits.writeBatchTimeMax = .seconds(3_600) }) { cluster in
            let (first, second) = (cluster.nodes[0].store, cluster.nodes[1].store)
            for id in 1...3 as ClosedRange<UInt8> {
                try await first.write { transaction in
                    try transaction.put(ending, [id], EndingRecord())
                    try transaction.scheduleExpiry(at: Timestamp(microseconds: 100 * Int64(id)), ending, [id])
                }
            }
            try await cluster.catchUp()
            try await second.write { transaction in
                try transaction.put(ending, [2], EndingRecord())
                try Self.breakMAC(ending, [2], transaction)
            }
            let damaged = Counter()
            for _ in 0..<2 {
                _ = try await second.sweep(now: Timestamp(microseconds: 1_000), limit: 100) { _ in damaged.add() }
            }
            #expect(damaged.value == 1)
            try await cluster.catchUp()
            #expect(try await sweep(first, 1_000) == 1)
            try await cluster.catchUp()
            for store in [first, second] { #expect(try store.read { try $0.count(Schema.expiry) } == 0) }
        }
    }

    @Test func `A damaged record that was passed over is tried again after its time`() {
        let damaged = DamagedExpiries()
        let row = ExpiryKey(time: .zero, tableID: 18, key: [2])
        damaged.passOver(row, until: Timestamp(microseconds: 100))
        let before = damaged.rows(now: Timestamp(microseconds: 99))
        let after = damaged.rows(now: Timestamp(microseconds: 100))
        #expect(before == [row] && after.isEmpty)
    }

    /// Puts a row of the schedule whose MAC is wrong on this node.
    private static func damage(_ key: ExpiryKey, _ transaction: borrowing WriteTransaction) throws {
        try transaction.put(Schema.expiry, key, [])
        try breakMAC(Schema.expiry, key, transaction)
    }

    /// Breaks the MAC, on this node, of a row that was put in the same write.
    private static func breakMAC<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, _ key: Key, _ transaction: borrowing WriteTransaction
    ) throws {
        guard let address = try transaction.reading.borrowedValue(table, key)?.baseAddress else {
            throw StoreError.corrupt(table: table.name.description)
        }
        // Proof: the row was put in this write, so that its page is a copy in memory which only this write sees. The
        // last byte of its MAC is before its value.
        let mac = UnsafeMutableRawPointer(mutating: address - 1)
        mac.storeBytes(of: mac.load(as: UInt8.self) ^ 1, as: UInt8.self)
    }

    @Test func aRecordMayScheduleItselfAgain() async throws {
        try await Self.withStore { store in
            try put(store, 1, at: 100, EndingRecord(.isPutOff(until: Timestamp(microseconds: 500))))
            #expect(try await sweep(store, 100) == 1)
            #expect(try await sweep(store, 499) == 0)
            #expect(try await sweep(store, 500) == 1)
            #expect(try store.read { try $0.count(ending) } == 0)
        }
    }

    @Test(arguments: [502, 503]) func expiringKeysAreShorter(byteCount: Int) throws {
        try withTemporaryStore(tables: testTables) { store in
            let key = [UInt8](repeating: 1, count: byteCount)
            if byteCount <= 502 {
                try store.writeBlocking { try $0.scheduleExpiry(at: .zero, ending, key) }
            } else {
                #expect(throws: StoreError.keySize) {
                    try store.writeBlocking { try $0.scheduleExpiry(at: .zero, ending, key) }
                }
            }
        }
    }
}
