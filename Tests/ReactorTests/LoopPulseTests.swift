import Base
import Reactor
import Testing

@Suite struct LoopPulseTests {
    @Test func `A loop that is stuck is found, and forgiven once it turns again`() {
        let loops = [EventLoop(name: "free"), EventLoop(name: "stuck")]
        for loop in loops { loop.start() }
        defer { for loop in loops { end(loop) } }
        let (entered, leave) = (Semaphore(), Semaphore())
        loops[1].run {
            entered.signal()
            leave.wait()
        }
        entered.wait()
        let patient = LoopPulse(loops, patience: .seconds(3_600))
        let impatient = LoopPulse(loops, patience: .zero)
        #expect(patient.isBeating, "nobody was asked before")
        #expect(patient.isBeating, "there is time left")
        #expect(impatient.isBeating, "nobody was asked before")
        #expect(!impatient.isBeating, "asked, and not answered in time")
        leave.signal()
        turn(loops[1])
        turn(loops[0])
        #expect(impatient.isBeating)
    }

    /// Returns when everything that was queued on the loop before has run.
    private func turn(_ loop: EventLoop) {
        let done = Semaphore()
        loop.run { done.signal() }
        done.wait()
    }
}
