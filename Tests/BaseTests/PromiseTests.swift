import Base
import Testing

@Suite struct PromiseTests {
    private struct Refused: Error, Equatable {}

    @Test func aResultThatCameBeforeIsHandedOver() async throws {
        let promise = Promise<Int>()
        promise.succeed(7)
        #expect(try await promise.value() == 7)
    }

    @Test func aResultThatComesLaterWakesTheWaiter() async throws {
        let promise = Promise<Int>()
        let thread = OSThread(name: "later") { promise.succeed(8) }
        #expect(try await promise.value() == 8)
        join(thread)
    }

    @Test func aWaiterThatSurelyWaitsIsWoken() async throws {
        let promise = Promise<Int>()
        // The task starts on this actor: it runs to its wait before this function goes on.
        let waiter = Task.immediate { try await promise.value() }
        promise.succeed(9)
        #expect(try await waiter.value == 9)
    }

    @Test func anErrorIsThrown() async {
        let before = Promise<Int>()
        before.fail(Refused())
        await #expect(throws: Refused()) { try await before.value() }
        let later = Promise<Int>()
        let waiter = Task.immediate { try await later.value() }
        later.fail(Refused())
        await #expect(throws: Refused()) { try await waiter.value }
    }

    @Test func onlyTheFirstResultCounts() async throws {
        let promise = Promise<Int>()
        promise.succeed(1)
        promise.succeed(2)
        promise.fail(Refused())
        #expect(try await promise.value() == 1)
        promise.succeed(3)
    }

    @Test func aCancelledWaiterStopsWaitingAndTheLateResultIsDropped() async {
        let promise = Promise<Int>()
        let waiter = Task.immediate { try await promise.cancellableValue() }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
        promise.succeed(1)
    }

    @Test func aTaskThatIsCancelledAlreadyDoesNotWait() async {
        let promise = Promise<Int>()
        let waiter = Task.immediate {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await promise.cancellableValue()
        }
        await #expect(throws: CancellationError.self) { try await waiter.value }
    }

    @Test func cancellingAfterTheResultChangesNothing() async throws {
        let promise = Promise<Int>()
        let waiter = Task.immediate { try await promise.cancellableValue() }
        promise.succeed(4)
        waiter.cancel()
        #expect(try await waiter.value == 4)
    }

    @Test func aPlainWaitOutlastsCancellation() async throws {
        let promise = Promise<Int>()
        let waiter = Task.immediate { try await promise.value() }
        waiter.cancel()
        promise.succeed(5)
        #expect(try await waiter.value == 5)
    }

    @Test func completionsThatRaceWithTheWaitAreNeverLost() async throws {
        for round in 0..<200 {
            let promise = Promise<Int>()
            let threads = (0..<2).map { _ in OSThread(name: "race") { promise.succeed(round) } }
            #expect(try await promise.value() == round)
            for thread in threads { join(thread) }
        }
    }

    @Test func anAnswerMayComeAtOnceOrFromAnotherThread() async throws {
        #expect(try await answer { $0.give(.success(1)) } == 1)
        await #expect(throws: Refused()) { try await answer { (reply: Reply<Int>) in reply.give(.failure(Refused())) } }
        for round in 0..<200 {
            var thread: OSThread?
            let value = try await answer { reply in
                thread = OSThread(name: "answer") { reply.give(.success(round)) }
            }
            #expect(value == round)
            thread.map(join)
        }
    }

    @Test func anAnswerThatCannotComeIsAnError() async {
        await #expect(throws: Refused()) {
            try await answer { (_: Reply<Int>) in throw Refused() }
        }
    }

    @Test func anAnswerIsWaitedForInACancelledTask() async throws {
        let promise = Promise<Reply<Int>>()
        let waiter = Task.immediate { try await answer { promise.succeed($0) } }
        waiter.cancel()
        try await promise.value().give(.success(6))
        #expect(try await waiter.value == 6)
    }
}

/// A test may block its thread for the short time until the other thread ends.
func join(_ thread: OSThread) { thread.join() }
