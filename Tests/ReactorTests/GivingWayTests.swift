import Base
import Glibc
import Testing

@testable import Reactor

@Suite struct GivingWayTests {
    /// Computes until it was interrupted three times, or for five seconds.
    private func compute(until end: Instant?) -> Int64 {
        let (before, begin) = (GivingWay.count, Instant.now)
        GivingWay.begin(until: end)
        while GivingWay.count < before + 3, Instant.now.nanoseconds(since: begin) < 5_000_000_000 {}
        GivingWay.end()
        return GivingWay.count - before
    }

    /// Computes for ten turns' time.
    private func computeShortly(until end: Instant?) -> Int64 {
        let (before, begin) = (GivingWay.count, Instant.now)
        GivingWay.begin(until: end)
        while Instant.now.nanoseconds(since: begin) < 10_000_000 {}
        GivingWay.end()
        return GivingWay.count - before
    }

    @Test func aComputationGivesWayAgainAndAgain() {
        #expect(compute(until: .distantFuture) >= 3)
        // A second computation on the same thread gives way, too.
        #expect(compute(until: .distantFuture) >= 3)
    }

    @Test func nothingGivesWayAfterItsTimeOrWithoutOne() {
        #expect(computeShortly(until: nil) == 0)
        #expect(computeShortly(until: .now) == 0)
    }

    @Test func aThreadGivesWayInsideOnly() {
        #expect(compute(until: .distantFuture) >= 3)
        #expect(computeShortly(until: nil) == 0)
    }

    @Test func onlyTheThreadThatComputesIsInterrupted() {
        let (counted, done) = (Base.Semaphore(), Base.Semaphore())
        let other = Counter()
        let thread = OSThread(name: "other") {
            counted.signal()
            done.wait()
            other.add(UInt64(GivingWay.count))
        }
        counted.wait()
        #expect(compute(until: .distantFuture) >= 3)
        done.signal()
        thread.join()
        #expect(other.value == 0)
    }

    /// A system call that waits goes on after the signal.
    @Test func aWaitIsNotCutShort() {
        let semaphore = Base.Semaphore()
        let (before, begin) = (GivingWay.count, Instant.now)
        GivingWay.begin(until: .distantFuture)
        let cameThrough = semaphore.wait(for: .milliseconds(20))
        GivingWay.end()
        #expect(!cameThrough && Instant.now.nanoseconds(since: begin) >= 20_000_000)
        #expect(GivingWay.count >= before)
    }
}
