import Base
import Reactor
import Synchronization
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// Only one digest runs, also if nobody waits for it any more.
@Suite(.timeLimit(.minutes(3))) struct StoreDigestsTests {
    /// A digest that runs until the test lets it go or nobody wants it.
    private final class Slow: Sendable {
        let begun = Atomic(0)
        let goesOn = Atomic(false)
        let ignoresTheCall = Atomic(false)

        func digest(while isWanted: () -> Bool) throws -> StoreDigest {
            begun.add(1, ordering: .releasing)
            try blockUntil("the digest may end") {
                if !isWanted(), !ignoresTheCall.load(ordering: .acquiring) { throw CancellationError() }
                return goesOn.load(ordering: .acquiring)
            }
            return StoreDigest(place: nil, tables: [])
        }
    }

    private func withDigests(_ body: (StoreDigests, Slow) async throws -> Void) async throws {
        let pool = WorkerPool(name: "digests", workers: 2, queueMax: 8, queueMaxPerTenant: 8)
        let slow = Slow()
        let digests = StoreDigests(pool: pool) { try slow.digest(while: $0) }
        do { try await body(digests, slow) } catch {
            slow.goesOn.store(true, ordering: .releasing)
            throw error
        }
        slow.goesOn.store(true, ordering: .releasing)
        await Task { closePool(pool) }.value
    }

    private func begin(_ digests: StoreDigests) -> Task<StoreDigest, any Error> {
        Task { try await digests.compute(deadline: .distantFuture) }
    }

    @Test func aCancelledDigestKeepsItsPlaceUntilItHasEnded() async throws {
        try await withDigests { digests, slow in
            slow.ignoresTheCall.store(true, ordering: .releasing)
            let first = begin(digests)
            try await until("the first has begun") { slow.begun.load(ordering: .acquiring) == 1 }
            first.cancel()
            await #expect(throws: CancellationError.self) { _ = try await first.value }
            for _ in 0..<3 {
                await #expect(throws: Failure.self) { _ = try await begin(digests).value }
            }
            #expect(slow.begun.load(ordering: .acquiring) == 1)
            slow.goesOn.store(true, ordering: .releasing)
            try await until("the place is free") { (try? await begin(digests).value) != nil }
        }
    }

    @Test func aDigestThatNobodyWaitsForEnds() async throws {
        try await withDigests { digests, slow in
            let first = begin(digests)
            try await until("the first has begun") { slow.begun.load(ordering: .acquiring) == 1 }
            first.cancel()
            _ = try? await first.value
            // It ends although it may not go on.
            try await until("a second one begins") {
                let next = begin(digests)
                defer { next.cancel() }
                for _ in 0..<20 where slow.begun.load(ordering: .acquiring) < 2 { await Task.yield() }
                return slow.begun.load(ordering: .acquiring) >= 2
            }
        }
    }

    /// The pool's only worker is busy, so that the work never begins.
    @Test func aCallThatEndsBeforeItsWorkLeavesThePlace() async throws {
        let pool = WorkerPool(name: "digests", workers: 1, queueMax: 8, queueMaxPerTenant: 8)
        let (isBusy, goesOn) = (Gate(), Gate())
        let busy = Task {
            try await pool.run(tenant: .empty, deadline: .distantFuture) {
                isBusy.open()
                try blockUntil("the worker may go on") { goesOn.isOpen }
            }
        }
        try await until("the worker is busy") { isBusy.isOpen }
        let digests = StoreDigests(pool: pool) { _ in StoreDigest(place: nil, tables: []) }
        let waiting = begin(digests)
        try await until("the digest waits") { pool.counts.queued == 1 }
        waiting.cancel()
        _ = try? await waiting.value
        goesOn.open()
        #expect(try await begin(digests).value.tables.isEmpty)
        try await busy.value
        await Task { closePool(pool) }.value
    }
}

/// Something that another thread waits for.
private final class Gate: Sendable {
    private let state = Atomic(false)

    var isOpen: Bool { state.load(ordering: .acquiring) }

    func open() { state.store(true, ordering: .releasing) }
}

private func closePool(_ pool: WorkerPool) { pool.close() }
