import Base
import Synchronization

/// The bounded queue in front of the writer: fair between tenants, first in, first out within one (`WriteLines`), a
/// whole batch at a time.
final class WriteQueue: Sleeper {
    private struct State {
        var waiting: WriteLines<WriteRequest>
        var refusal: StoreError?
        /// The number of requests at which the sleeping writer is woken. Nil while it is awake.
        var countAwaited: Int?
        /// The number of waiting requests that may not be put off.
        var urgentCount = 0

        func mustBegin(with count: Int) -> Bool { refusal != nil || waiting.count >= count || urgentCount > 0 }

        /// Whether the writer sleeps, and has to be woken: once per sleep.
        mutating func endsSleep() -> Bool {
            guard let awaited = countAwaited, waiting.count >= awaited || urgentCount > 0 else { return false }
            countAwaited = nil
            return true
        }
    }

    enum Taken {
        case batch([WriteRequest])
        case timedOut
        case closed
    }

    private let state: Mutex<State>
    private let wakeup = WakeSignal()
    /// Signalled instead of `wakeup` if the writer sleeps on it.
    private let alarm: EventDescriptor?

    init(countMax: Int, alarm: EventDescriptor? = nil) {
        self.state = Mutex(State(waiting: WriteLines(countMax: countMax)))
        self.alarm = alarm
    }

    var count: Int { state.withLock { $0.waiting.count } }

    /// Throws `.overloaded` if the request's tenant may take no further place, or the error with which the queue was
    /// closed.
    func add(_ request: WriteRequest) throws(StoreError) {
        let held = HeldWakeups.current
        let (refusal, mustWake) = state.withLock { state -> (StoreError?, Bool) in
            if let refusal = state.refusal { return (refusal, false) }
            guard state.waiting.add(request) else { return (.overloaded, false) }
            if !request.mayBePutOff { state.urgentCount += 1 }
            return (nil, held == nil && state.endsSleep())
        }
        if let refusal { throw refusal }
        if let held { held.add(self) }
        if mustWake { wake() }
    }

    func wakeIfNeeded() {
        if state.withLock({ $0.endsSleep() }) { wake() }
    }

    private func wake() {
        if let alarm { alarm.signal() } else { wakeup.signal() }
    }

    /// Refuses every later request with `refusal`. The writer still gets the requests that wait already.
    func close(with refusal: StoreError) {
        let mustWake = state.withLock { state in
            if state.refusal == nil { state.refusal = refusal }
            defer { state.countAwaited = nil }
            return state.countAwaited != nil
        }
        if mustWake { wake() }
    }

    var isClosed: Bool { state.withLock { $0.refusal != nil } }

    /// Whether the writer sleeps.
    var isAwaited: Bool { state.withLock { $0.countAwaited != nil } }

    /// Waits for requests, at most until `deadline` if there is one. Requests that may be put off then wait for others
    /// to come with them, for as long as there is `spareTime`.
    @available(*, noasync, message: "blocks the thread")
    func take(countMax: Int, deadline: Instant?, spareTime: () -> Duration = { .zero }) -> Taken {
        while true {
            if mayPutOff(until: countMax) { putOff(spareTime(), orUntil: countMax) }
            let taken = state.withLock { takeNow(&$0, countMax) }
            if let taken { return taken }
            if !wakeup.wait(until: deadline) { return .timedOut }
        }
    }

    private func mayPutOff(until count: Int) -> Bool {
        state.withLock { $0.waiting.count > 0 && !$0.mustBegin(with: count) }
    }

    /// Sleeps for `time`, or until there are `count` requests or a request that may not be put off.
    @available(*, noasync, message: "blocks the thread")
    func putOff(_ time: Duration, orUntil count: Int) {
        guard time > .zero else { return }
        let deadline = Instant.now.advanced(by: time)
        while true {
            let isDone = state.withLock { state in
                if state.mustBegin(with: count) { return true }
                state.countAwaited = count
                return false
            }
            if isDone || !wakeup.wait(until: deadline) { break }
        }
        state.withLock { $0.countAwaited = nil }
    }

    /// The requests that wait now. Nil if there are none; then the alarm goes off when that changes.
    func takeNow(countMax: Int) -> Taken? { state.withLock { takeNow(&$0, countMax) } }

    private func takeNow(_ state: inout State, _ countMax: Int) -> Taken? {
        guard state.waiting.count > 0 else {
            if state.refusal != nil { return .closed }
            state.countAwaited = 1
            return nil
        }
        let batch = state.waiting.take(countMax: countMax)
        state.urgentCount -= Self.urgentCount(of: batch[...])
        return .batch(batch)
    }

    /// Takes requests back that did not run: they are the next ones of their tenants. Also after `close`.
    func putBack(_ requests: ArraySlice<WriteRequest>) {
        for request in requests { request.forgetRun() }
        state.withLock { state in
            state.waiting.putBack(requests)
            state.urgentCount += Self.urgentCount(of: requests)
        }
    }

    /// Notes that requests which were taken are finished, and charges their tenants with what they took.
    func ended(_ requests: ArraySlice<WriteRequest>) { state.withLock { $0.waiting.ended(requests) } }

    private static func urgentCount(of requests: ArraySlice<WriteRequest>) -> Int { requests.count { !$0.mayBePutOff } }
}
