import Base
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Store

/// A node whose clock is not the engine's.
@Suite struct ClockAgreementTests {
    private static let time = Timestamp(seconds: 1_800_000_000)
    private static let limits = JournalLimits()

    /// Whether the clock counts as wrong at each second, when the node is so much `ahead`.
    private func wrong(_ ahead: [Duration], answerTime: Duration = .zero) -> [Bool] {
        var agreement = ClockAgreement()
        return ahead.enumerated().map { second, ahead in
            agreement.note(
                engine: Self.time, before: Self.time + ahead, after: Self.time + ahead + answerTime,
                at: Instant(nanoseconds: Int64(second) * 1_000_000_000), limits: Self.limits)
            return agreement.isWrong
        }
    }

    @Test func aDifferenceUpToItsLimitIsNone() {
        for ahead in [Self.limits.clockDifferenceMax, .zero - Self.limits.clockDifferenceMax] {
            #expect(!wrong(Array(repeating: ahead, count: 20)).contains(true))
        }
    }

    @Test func aLargerOneCountsWhenItHasLasted() {
        let more = Self.limits.clockDifferenceMax + .microseconds(1)
        for ahead in [more, .zero - more] {
            let found = wrong(Array(repeating: ahead, count: 12))
            #expect(found == (0..<12).map { $0 >= 10 })
        }
    }

    @Test func aClockIsAwayFromTheFirstReadingOn() {
        var agreement = ClockAgreement()
        let differences: [Duration] = [.zero, .seconds(3), .zero - .seconds(3), .seconds(2), .days(9)]
        let found = differences.map { ahead in
            agreement.note(
                engine: Self.time, before: Self.time + ahead, after: Self.time + ahead, at: Instant(nanoseconds: 0),
                limits: Self.limits)
            return agreement.isAway
        }
        #expect(found == [false, true, true, false, true] && !agreement.isWrong)
    }

    @Test func oneThatIsMendedBeginsAnew() {
        let more = Self.limits.clockDifferenceMax + .seconds(1)
        let found = wrong(Array(repeating: more, count: 9) + [.zero] + Array(repeating: more, count: 11) + [.zero])
        #expect(found.firstIndex(of: true) == 20 && found.last == false)
    }

    @Test func anAnswerThatTookLongTellsNothing() {
        #expect(!wrong(Array(repeating: .zero - .seconds(5), count: 20), answerTime: .seconds(4)).contains(true))
    }

    @Test func aNodeWhoseClockIsWrongChangesNothingAndGoesOnWhenItIsRight() async throws {
        let (engine, clock) = (ManualClock(), ManualClock())
        let rows = MemoryJournal.Rows(beginning: JournaledNodes.beginning, clock: engine.clock)
        let troubles = Mutex<[StoreTrouble?]>([])
        try await withTemporaryDirectory { directory in
            try JournaledNodes.join(directory)
            let store = try openTestStore(at: directory, tables: JournaledNodes.tables) { configuration in
                configuration.journal = MemoryJournal(rows)
                configuration.durability = .relaxed
                configuration.clock = clock.clock
                configuration.timeMark = { clock.clock.now() }
                configuration.limits.journal.clockPatience = .zero
                configuration.onTrouble = { trouble in troubles.withLock { $0.append(trouble) } }
            }
            defer { close(store) }
            try await store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            clock.step(by: .days(1))
            await #expect(throws: StoreError.journal(.clockWrong(.days(1)))) {
                try await store.write { try $0.put(JournaledNodes.values, [1], [2]) }
                try await store.write { try $0.put(JournaledNodes.values, [1], [3]) }
            }
            #expect(store.journalStatus?.isClockWrong == true)
            #expect(troubles.withLock { $0 } == [StoreTrouble.clockWrong])
            // The node still follows the others, and what they write may fill the disk while a backup runs.
            let room = store.watchRoom()
            store.counters.refusals.add()
            #expect(room.hasRunOut)
            // A write that changes nothing is answered, and the store's mark did not follow the clock.
            try await store.reachJournalEnd()
            let mark = try #require(try store.timeMark())
            #expect(mark <= engine.clock.now() + Self.limits.clockDifferenceMax)
            clock.step(by: .zero - .days(1))
            try await store.reachJournalEnd()
            try await store.write { try $0.put(JournaledNodes.values, [1], [4]) }
            #expect(try store.read { try $0.get(JournaledNodes.values, [1]) } == [4])
            #expect(store.journalStatus?.isClockWrong == false)
            #expect(troubles.withLock { $0 } == [StoreTrouble.clockWrong, nil])
        }
    }
}

/// A test may block its thread for the moment that closing takes.
private func close(_ store: Store) { store.close() }
