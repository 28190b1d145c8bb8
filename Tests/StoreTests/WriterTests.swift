import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

struct Refused: Error, Equatable {}

@Suite struct WriterTests {
    @Test func aWriteReturnsItsBodysResultOnceItCanBeRead() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            let result = try await store.write { transaction in
                try transaction.put(blobs, [1], [2])
                return "done"
            }
            #expect(result == "done")
            #expect(try store.read { try $0.get(blobs, [1]) } == [2])
        }
    }

    @Test func queuedWritesShareOneCommit() throws {
        try withTemporaryStore(tables: testTables) { store in
            let before = try store.statistics()
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for number in 0..<100 {
                try store.write {
                    try $0.put(blobs, [UInt8(number)], [1])
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            #expect(try store.statistics().queuedWrites == 100)
            gate.open()
            let results = outcomes.wait(for: 100)
            #expect(results.map(\.number) == Array(0..<100))
            #expect(results.allSatisfy { $0.error == nil })
            let after = try store.statistics()
            #expect(after.commits - before.commits == 1)
            #expect(after.writes - before.writes == 101)
            #expect(after.queuedWrites == 0)
        }
    }

    @Test func concurrentTasksShareCommits() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<32 {
                    group.addTask {
                        for number in 0..<20 {
                            try await store.write { try $0.put(blobs, [UInt8(task), UInt8(number)], [1]) }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let statistics = try store.statistics()
            #expect(try store.read { try $0.count(blobs) } == 640)
            #expect(statistics.writes >= 640)
            #expect(statistics.commits < 640)
        }
    }

    @Test func aBodySeesTheBatchsEarlierWrites() throws {
        try withTemporaryStore(tables: testTables) { store in
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for number in 0..<50 {
                try store.write { transaction in
                    let count = try transaction.get(blobs, [1])?[0] ?? 0
                    guard Int(count) == number else { throw Refused() }
                    try transaction.put(blobs, [1], [count + 1])
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            gate.open()
            #expect(outcomes.wait(for: 50).allSatisfy { $0.error == nil })
            #expect(try store.read { try $0.get(blobs, [1]) } == [50])
        }
    }

    @Test func onlyOneOfTwoPutsOfAnAbsentKeySucceeds() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            let won: [UInt8] = try await withThrowingTaskGroup(of: (UInt8, Bool).self) { group in
                for number in 1...2 as ClosedRange<UInt8> {
                    group.addTask { (number, try await store.write { try $0.put(ifAbsent: blobs, [1], [number]) }) }
                }
                return try await group.reduce(into: []) { if $1.1 { $0.append($1.0) } }
            }
            #expect(won.count == 1)
            #expect(try store.read { try $0.get(blobs, [1]) } == won)
        }
    }

    /// The bodies in `failing` throw after a change; none of them may leave anything, all others must.
    @Test(arguments: [[3], [0], [19], [0, 1, 2], [2, 3, 5, 7, 11, 13, 17, 19], Array(0..<20)])
    func aBodyThatThrowsAfterAChangeWritesNothing(failing: [Int]) throws {
        try withTemporaryStore(tables: testTables) { store in
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for number in 0..<20 {
                try store.write { transaction in
                    try transaction.put(blobs, [0], (try transaction.get(blobs, [0]) ?? []) + [UInt8(number)])
                    try transaction.put(blobs, [1, UInt8(number)], [1])
                    if failing.contains(number) { throw Refused() }
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            gate.open()
            let results = outcomes.wait(for: 20)
            #expect(results.map(\.number) == Array(0..<20))
            for (number, error) in results { #expect((error != nil) == failing.contains(number)) }
            let kept = (0..<20).filter { !failing.contains($0) }
            try store.read { transaction throws in
                #expect(try transaction.get(blobs, [0]) ?? [] == kept.map { UInt8($0) })
                for number in 0..<20 {
                    #expect(try transaction.exists(blobs, [1, UInt8(number)]) == kept.contains(number))
                }
            }
            #expect(try store.statistics().reruns == UInt64(failing.count))
        }
    }

    @Test func aBodyThatThrowsBeforeItsFirstChangeFailsAlone() throws {
        try withTemporaryStore(tables: testTables) { store in
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for number in 0..<10 {
                try store.write { transaction in
                    if number == 4 { throw Refused() }
                    try transaction.put(blobs, [UInt8(number)], [1])
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            gate.open()
            #expect(outcomes.wait(for: 10).filter { $0.error != nil }.map(\.number) == [4])
            #expect(try store.statistics().reruns == 0)
            #expect(try store.read { try $0.count(blobs) } == 9)
        }
    }

    private func expectNoPlace(for tenant: Text, in store: Store) {
        WriteMeter.$current.withValue(WriteMeter(tenant: tenant)) {
            #expect(throws: StoreError.overloaded) {
                try store.write { _ in
                } completion: { _ in
                }
            }
        }
    }

    @Test func theQueueIsBounded() throws {
        try withTemporaryStore(tables: testTables) {
            $0.limits.writeQueueMax = 4
        } _: { store in
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for (number, tenant) in (["", "", "a", "b"] as [Text]).enumerated() {
                try WriteMeter.$current.withValue(WriteMeter(tenant: tenant)) {
                    try store.write({ _ in }, completion: { outcomes.record(number, $0) })
                }
                // One tenant has half of the places.
                if number == 1 { expectNoPlace(for: "", in: store) }
            }
            expectNoPlace(for: "c", in: store)
            gate.open()
            #expect(outcomes.wait(for: 4).allSatisfy { $0.error == nil })
            try store.writeBlocking { _ in }
        }
    }

    @Test func aBatchHoldsNoMoreThanItsLimit() throws {
        try withTemporaryStore(tables: testTables) {
            $0.limits.writeBatchMax = 4
        } _: { store in
            let before = try store.statistics().commits
            let gate = WriterGate()
            let outcomes = WriteOutcomes()
            try gate.close(store)
            for number in 0..<9 {
                try store.write {
                    try $0.put(blobs, [UInt8(number)], [1])
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            gate.open()
            #expect(outcomes.wait(for: 9).map(\.number) == Array(0..<9))
            #expect(try store.statistics().commits - before == 3)
        }
    }

    @Test func closeFinishesWhatIsQueuedAndRefusesTheRest() throws {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: testTables)
            let outcomes = WriteOutcomes()
            for number in 0..<20 {
                try store.write {
                    try $0.put(blobs, [UInt8(number)], [1])
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            store.close()
            #expect(outcomes.wait(for: 20).allSatisfy { $0.error == nil })
            #expect(throws: StoreError.closed) { try store.writeBlocking { _ in } }
            #expect(throws: StoreError.closed) { try store.read { _ in } }
            #expect(throws: StoreError.closed) { _ = try store.statistics() }
            store.close()
            let again = try openTestStore(at: directory, tables: testTables)
            defer { again.close() }
            #expect(try again.read { try $0.count(blobs) } == 20)
        }
    }
}
