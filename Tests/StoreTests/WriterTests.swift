import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

private struct Refused: Error, Equatable {}

/// Holds the writer inside of a body, so that what is queued meanwhile becomes one batch.
private final class Gate: Sendable {
    private let entered = Semaphore()
    private let opened = Semaphore()

    func close(_ store: Store) throws {
        try store.write { [entered, opened] _ in
            entered.signal()
            opened.wait()
        } completion: { _ in
        }
        entered.wait()
    }

    func open() { opened.signal() }
}

/// Collects the outcomes of callback writes in the order they come.
private final class Outcomes: Sendable {
    private let list = Mutex<[(Int, StoreError?)]>([])
    private let arrived = Semaphore()

    func record(_ number: Int, _ result: Result<some Sendable, any Error>) {
        var error: StoreError?
        if case .failure(let failure) = result {
            error = failure as? StoreError ?? .system(code: 0, operation: "other")
        }
        list.withLock { $0.append((number, error)) }
        arrived.signal()
    }

    func wait(for count: Int) -> [(number: Int, error: StoreError?)] {
        for _ in 0..<count { arrived.wait() }
        return list.withLock { $0 }
    }
}

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
            let gate = Gate()
            let outcomes = Outcomes()
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
            let gate = Gate()
            let outcomes = Outcomes()
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

    /// `failing` throw after a change; none of them may leave anything, all others must.
    @Test(arguments: [[3], [0], [19], [0, 1, 2], [2, 3, 5, 7, 11, 13, 17, 19], Array(0..<20)])
    func aBodyThatThrowsAfterAChangeWritesNothing(failing: [Int]) throws {
        try withTemporaryStore(tables: testTables) { store in
            let gate = Gate()
            let outcomes = Outcomes()
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
            let gate = Gate()
            let outcomes = Outcomes()
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

    @Test func theQueueIsBounded() throws {
        try withTemporaryStore(tables: testTables) {
            $0.limits.writeQueueMax = 3
        } _: { store in
            let gate = Gate()
            let outcomes = Outcomes()
            try gate.close(store)
            for number in 0..<3 {
                try store.write { _ in
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            #expect(throws: StoreError.overloaded) {
                try store.write { _ in
                } completion: { _ in
                }
            }
            gate.open()
            #expect(outcomes.wait(for: 3).allSatisfy { $0.error == nil })
            try store.writeBlocking { _ in }
        }
    }

    @Test func aBatchHoldsNoMoreThanItsLimit() throws {
        try withTemporaryStore(tables: testTables) {
            $0.limits.writeBatchMax = 4
        } _: { store in
            let before = try store.statistics().commits
            let gate = Gate()
            let outcomes = Outcomes()
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
            let outcomes = Outcomes()
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

@Suite struct WriterFailureTests {
    private func fill(_ store: Store) throws -> Int {
        var count = 0
        while true {
            do {
                let number = count
                try store.writeBlocking { transaction in
                    let key = withUnsafeBytes(of: UInt32(number).bigEndian) { [UInt8]($0) }
                    try transaction.put(blobs, key, [UInt8](repeating: 1, count: 3_000))
                }
            } catch StoreError.full {
                return count
            }
            count += 1
        }
    }

    @Test func aFullMapFailsWritesAndNothingElse() throws {
        try withTemporaryStore(tables: testTables) {
            $0.mapByteCount = 1 << 20
        } _: { store in
            let count = try fill(store)
            #expect(count > 50)
            #expect(try store.read { try $0.count(blobs) } == count)
            #expect(try store.statistics().writeErrors > 0)
            // Deleting needs pages too, and finds those kept by one transaction's freed ones at the latest.
            for _ in 0..<4 {
                _ = try? store.writeBlocking { try $0.deleteAll(blobs, prefix: EmptyPrefix(), limit: 20) }
            }
            #expect(try store.read { try $0.count(blobs) } < count)
            try store.writeBlocking { try $0.put(blobs, [9], [1]) }
            #expect(try store.read { try $0.get(blobs, [9]) } == [1])
        }
    }

    @Test func oneGiantWriteFailsAlone() throws {
        try withTemporaryStore(tables: testTables) {
            $0.mapByteCount = 1 << 20
        } _: { store in
            let gate = Gate()
            let outcomes = Outcomes()
            try gate.close(store)
            for number in 0..<30 {
                try store.write { transaction in
                    let byteCount = number == 17 ? 4 << 20 : 10
                    // Swallowing the error must not let the batch be committed as if nothing had happened.
                    if number == 18 { try? transaction.put(blobs, [0], [1]) }
                    try transaction.put(blobs, [1, UInt8(number)], [UInt8](repeating: 1, count: byteCount))
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            gate.open()
            let results = outcomes.wait(for: 30)
            #expect(results.map(\.number) == Array(0..<30))
            #expect(results.filter { $0.error != nil }.map(\.number) == [17])
            #expect(results[17].error == .full)
            #expect(try store.read { try $0.count(blobs) } == 30)
        }
    }

    @Test func aSwallowedFullErrorStillFailsTheWrite() throws {
        try withTemporaryStore(tables: testTables) {
            $0.mapByteCount = 1 << 20
        } _: { store throws in
            #expect(throws: StoreError.full) {
                try store.writeBlocking { transaction in
                    try transaction.put(blobs, [1], [1])
                    try? transaction.put(blobs, [2], [UInt8](repeating: 1, count: 4 << 20))
                }
            }
            #expect(try store.read { try $0.count(blobs) } == 0)
        }
    }

    @Test func aFailedSyncIsFatal() throws {
        try withTemporaryDirectory { directory in
            let failing = Atomic(false)
            let reported = Mutex<[StoreError]>([])
            let environment = try Environment(
                StoreConfiguration(directory: directory, tables: testTables), authenticator: TestAuthenticator(),
                eventHash: testEventHash)
            let store = try Store(environment) { counters throws(StoreError) in
                try Writer(
                    environment, counters: counters, onFatal: { error in reported.withLock { $0.append(error) } },
                    commitOutcome: { failing.load(ordering: .relaxed) ? EIO : $0 })
            }
            defer { store.close() }
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            let gate = Gate()
            let outcomes = Outcomes()
            try gate.close(store)
            for number in 0..<5 {
                try store.write {
                    try $0.put(blobs, [2], [2])
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            failing.store(true, ordering: .relaxed)
            gate.open()
            #expect(outcomes.wait(for: 5).allSatisfy { $0.error == .fatal(code: EIO) })
            failing.store(false, ordering: .relaxed)
            #expect(throws: StoreError.fatal(code: EIO)) { try store.writeBlocking { _ in } }
            #expect(reported.withLock { $0 } == [.fatal(code: EIO)])
            #expect(try store.read { try $0.get(blobs, [1]) } == [1])
        }
    }
}
