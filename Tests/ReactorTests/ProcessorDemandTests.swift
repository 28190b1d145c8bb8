import Base
import Testing

@testable import Reactor

@Suite struct ProcessorDemandTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func makeWork(milliseconds: Int64 = 10) -> Work {
        Work(
            tenant: "a", deadline: .distantFuture, cost: WorkCost(time: .milliseconds(milliseconds)),
            execute: { {} }, fail: { _ in })
    }

    private func time(_ milliseconds: Int64) -> Instant { start.advanced(by: .milliseconds(milliseconds)) }

    private func end(
        _ demand: inout ProcessorDemand, lane: WorkLane = .short, expected: Int64 = 10, took: Int64 = 10,
        interruptions: Int64 = 0, times: Int = 1
    ) {
        let use = ProcessorDemand.Use(
            nanoseconds: took * 1_000_000, processorNanoseconds: 10_000_000, interruptions: interruptions)
        for _ in 0..<times { demand.ended(makeWork(milliseconds: expected), lane: lane, use: use) }
    }

    /// A pool in which other threads ran often in the middle of the works.
    private var interrupted: ProcessorDemand {
        var demand = ProcessorDemand()
        end(&demand, interruptions: 50, times: 8)
        return demand
    }

    private func givesWay(_ demand: ProcessorDemand) -> Bool {
        demand.givingWay(makeWork(), .first, now: start) != nil
    }

    /// A work that is expected to take ten milliseconds should have ended after four times as long plus 40 ms.
    @Test func aWorkGivesWayAsLongAsItHasTime() {
        let demand = interrupted
        for (lane, expected) in [(WorkLane.all, nil), (.short, .distantFuture), (.first, time(80)), (.long, time(80))] {
            #expect(demand.givingWay(makeWork(), lane, now: start) == expected)
        }
        #expect(demand.givingWay(makeWork(milliseconds: 500), .long, now: start) == time(2_040))
        #expect(demand.givingWay(makeWork(milliseconds: .max / 2_000), .long, now: start) == time(4_040))
    }

    @Test func aWorkGivesWayOnlyWhereOthersWantToRun() {
        var demand = ProcessorDemand()
        for lane in WorkLane.allCases { #expect(demand.givingWay(makeWork(), lane, now: start) == nil) }
        // 13 interruptions in ten milliseconds are 1,300 in a second: the average of many works comes near.
        end(&demand, interruptions: 13, times: 100)
        #expect(!givesWay(demand))
        end(&demand, interruptions: 14, times: 100)
        #expect(givesWay(demand))
        end(&demand, interruptions: 0, times: 2)
        #expect(!givesWay(demand))
        // No number of interruptions is too large.
        end(&demand, interruptions: .max)
        #expect(givesWay(demand))
    }

    /// What a work that has ended tells about the machine.
    @Test(
        arguments: [
            // Lane of the ended work, the expected and the real time in ms; whether the machine was, and is, crowded.
            (WorkLane.first, 10, 80, false, false), (.first, 10, 81, false, true), (.first, 10, 21, true, true),
            (.first, 10, 20, true, false), (.short, 10, 81, false, false), (.short, 10, 81, true, true),
            (.short, 10, 80, true, false),
            (.long, 500, 9_999, false, false), (.long, 500, 1, true, true), (.all, 10, 9_999, false, false),
            (.short, 0, 0, true, true), (.short, 0, 99, false, false),
        ] as [(WorkLane, Int64, Int64, Bool, Bool)])
    func theFirstWorkerStopsGivingWayWhereItGetsNowhere(
        lane: WorkLane, expected: Int64, took: Int64, wasCrowded: Bool, isCrowded: Bool
    ) {
        var demand = interrupted
        if wasCrowded { end(&demand, lane: .first, took: 81, interruptions: 50) }
        end(&demand, lane: lane, expected: expected, took: took, interruptions: 50)
        #expect(demand.isCrowded == isCrowded)
        #expect(givesWay(demand) == !isCrowded)
        // Crowding makes no difference to a worker that only gets spare time.
        #expect(demand.givingWay(makeWork(), .short, now: start) == .distantFuture)
    }

    @Test func aStalledWorkIsRepeatedWithoutGivingWay() throws {
        var queue = WorkQueue(name: "test", limits: .init(workers: 2, queueMax: 8, queueMaxPerTenant: 8))
        func begin(_ lane: WorkLane, at now: Instant) throws -> Instant? {
            var expired: [Work] = []
            try queue.submit(makeWork(), now: now, expired: &expired)
            return queue.take(now: now, lane: lane).givesWayUntil
        }
        let work = makeWork()
        var expired: [Work] = []
        try queue.submit(work, now: start, expired: &expired)
        _ = queue.take(now: start, lane: .first)
        queue.finished(
            work, lane: .first,
            use: .init(nanoseconds: 10_000_000, processorNanoseconds: 10_000_000, interruptions: 1_000))
        #expect(try begin(.short, at: start) == .distantFuture)
        #expect(try begin(.first, at: time(79)) == time(159))
        let repeated = queue.take(now: time(80), lane: .first)
        #expect(repeated.next != nil && repeated.givesWayUntil == nil)
        #expect(try begin(.first, at: time(80)) == time(160))
    }
}
