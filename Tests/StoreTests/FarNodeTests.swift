import Base
import Glibc
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Nodes so far from the engine that a near node's entry always comes before theirs.
@Suite struct FarNodeTests {
    /// The near node stops after so many writes, so that a test fails instead of going on for ever.
    private static let writesMax = 5_000

    /// A way to the engine on which a question takes so many microseconds. But the bodies of entries come at once: the
    /// test's journal gives out three of them at a time, and an engine hundreds.
    private func journal(_ rows: MemoryJournal.Rows, distance: UInt32) -> MemoryJournal {
        MemoryJournal(rows) { question in
            if question != .entries { usleep(distance) }
            return nil
        }
    }

    private func open(_ directory: String, _ journal: MemoryJournal) throws -> Store {
        try JournaledNodes.join(directory)
        return try openTestStore(at: directory, tables: JournaledNodes.tables) { configuration in
            configuration.journal = journal
            configuration.durability = .relaxed
            configuration.limits.journal.outrunTimeBeforeTurn = .zero
        }
    }

    /// A test may block its thread for the moment that closing takes.
    private func close(_ stores: [Store]) { for store in stores { store.close() } }

    private func write(_ key: UInt8, to store: Store) async throws {
        for number in 0..<3 { try await store.write { try $0.put(JournaledNodes.values, [key], [UInt8(number)]) } }
    }

    @Test(arguments: [1, 2]) func farNodesStartAndMakeTheirChanges(count: Int) async throws {
        try await withTemporaryDirectory { directory in
            let rows = MemoryJournal.Rows(beginning: JournaledNodes.beginning)
            let near = try open(directory + "/near", journal(rows, distance: 1_000))
            defer { close([near]) }
            let isDone = Atomic(false)
            let writing = Task {
                var written = 0
                while written < Self.writesMax, !isDone.load(ordering: .relaxed) {
                    written += 1
                    let value = UInt8(written & 255)
                    try await near.write { try $0.put(JournaledNodes.values, [0], [value]) }
                }
                return written
            }
            try await until("the near node writes") { rows.count >= 20 }
            let far = try (1...count).map { try open("\(directory)/\($0)", journal(rows, distance: 20_000)) }
            defer { close(far) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, store) in far.enumerated() {
                    group.addTask { try await write(UInt8(number + 1), to: store) }
                }
                try await group.waitForAll()
            }
            isDone.store(true, ordering: .relaxed)
            let written = try await writing.value
            #expect(written < Self.writesMax)
            for (number, store) in far.enumerated() {
                #expect(try store.read { try $0.get(JournaledNodes.values, [UInt8(number + 1)]) } == [2])
            }
        }
    }

    /// A rival takes what the node wants, while the node is outrun.
    @Test func aTurnWithNothingToAppendIsGivenBack() async throws {
        struct Taken: Error {}
        let rival = Mutex<Store?>(nil)
        let entryCount = Mutex(0)
        try await withTemporaryDirectory { directory in
            let rows = MemoryJournal.Rows(beginning: JournaledNodes.beginning)
            let near = try open(directory + "/near", MemoryJournal(rows))
            defer { close([near]) }
            let outrun = MemoryJournal(rows) { question in
                guard question == .append, let near = rival.withLock({ $0 }) else { return nil }
                let number = entryCount.withLock { count -> Int in
                    count += 1
                    return count
                }
                let key: [UInt8] = number < 3 ? [0] : [1]
                _ = try? near.writeBlocking { try $0.put(JournaledNodes.values, key, [UInt8(number & 255)]) }
                return nil
            }
            let far = try open(directory + "/far", outrun)
            defer { close([far]) }
            try await far.write { try $0.put(JournaledNodes.values, [2], [2]) }
            rival.withLock { $0 = near }
            await #expect(throws: Taken.self) {
                try await far.write { transaction in
                    guard try transaction.put(ifAbsent: JournaledNodes.values, [1], [2]) else { throw Taken() }
                }
            }
            rival.withLock { $0 = nil }
            #expect(entryCount.withLock { $0 } == 3)
            #expect(far.journalCounters.turns.value == 1)
            try await near.write { try $0.put(JournaledNodes.values, [2], [3]) }
            try await far.write { try $0.put(JournaledNodes.values, [2], [4]) }
            #expect(try far.read { try $0.get(JournaledNodes.values, [1]) } == [3])
        }
    }
}
