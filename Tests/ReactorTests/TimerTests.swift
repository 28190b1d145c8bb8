import Base
import Reactor
import Testing

@Suite struct TimerTests {
    @Test func timersFireInTheOrderOfTheirDeadlines() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            resident.performOutsideTask { resident in
                let now = Instant.now
                for milliseconds in [20, 0, 10, 30] {
                    var timer: Timer?
                    timer = Timer(on: loop) {
                        resident.note("\(milliseconds)")
                        // Breaks the cycle that keeps the timer until now.
                        timer = nil
                    }
                    timer?.arm(at: now.advanced(by: .milliseconds(milliseconds)))
                }
            }
            let entries = try await resident.entries(4)
            #expect(entries == ["0", "10", "20", "30"])
        }
    }

    @Test func aTimerNeverFiresEarlyHoweverItsDeadlineMoved() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            resident.performOutsideTask { resident in
                let final = Instant.now.advanced(by: .milliseconds(12))
                var timer: Timer?
                timer = Timer(on: loop) {
                    resident.note("early: \(Instant.now < final), armed: \(timer?.deadline != nil)")
                    timer = nil
                }
                timer?.arm(after: .milliseconds(1))
                timer?.arm(at: final)
            }
            let entries = try await resident.entries(1)
            #expect(entries == ["early: false, armed: false"])
        }
    }

    @Test func aDeadlineCanMoveEarlier() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            resident.performOutsideTask { resident in
                var timer: Timer?
                timer = Timer(on: loop) {
                    resident.note("fired")
                    timer = nil
                }
                timer?.arm(at: .distantFuture)
                timer?.arm(after: .milliseconds(1))
            }
            let entries = try await resident.entries(1)
            #expect(entries == ["fired"])
        }
    }

    @Test func aTimerCanBeArmedAgainInItsHandler() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            resident.performOutsideTask { resident in
                var timer: Timer?
                var rounds = 0
                timer = Timer(on: loop) {
                    rounds += 1
                    resident.note("\(rounds)")
                    if rounds < 3 { timer?.arm(after: .zero) } else { timer = nil }
                }
                timer?.arm(after: .zero)
            }
            let entries = try await resident.entries(3)
            #expect(entries == ["1", "2", "3"])
        }
    }

    @Test func aCancelledTimerDoesNotFireEvenWhenDueInTheSameTurn() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            resident.performOutsideTask { resident in
                var timers: [Timer] = []
                for _ in 0..<2 {
                    timers.append(
                        Timer(on: loop) {
                            resident.note("fired")
                            for timer in timers { timer.cancel() }
                            timers = []
                            Task {
                                await Task.yield()
                                resident.note("later turn")
                            }
                        })
                }
                let deadline = Instant.now
                for timer in timers { timer.arm(at: deadline) }
            }
            let entries = try await resident.entries(2)
            #expect(entries == ["fired", "later turn"])
        }
    }

    @Test func aCancelledTimerCanBeArmedAgain() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            resident.performOutsideTask { resident in
                var timer: Timer?
                timer = Timer(on: loop) {
                    resident.note("fired")
                    timer = nil
                }
                timer?.arm(after: .zero)
                timer?.cancel()
                #expect(timer?.deadline == nil)
                timer?.arm(after: .milliseconds(1))
            }
            let entries = try await resident.entries(1)
            #expect(entries == ["fired"])
        }
    }

    @Test func anArmedTimerMayBeDroppedOnItsLoopAndAfterItsEnd() async throws {
        let loop = EventLoop(name: "dropping")
        let resident = Resident(on: loop)
        loop.start()
        await resident.perform { _ in Timer(on: loop) {}.arm(after: .seconds(60)) }
        end(loop)
        Timer(on: loop) {}.arm(after: .seconds(60))
    }
}
