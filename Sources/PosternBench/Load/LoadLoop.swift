// One thread with an epoll of its own and a share of the connections. It shares the CPUs with the server it measures: a
// request costs it a copy, an answer a look at its first bytes, a batch of either one system call.

import Base
import Messages
import Wire

/// Sends requests as its pacing says and measures their answers.
// Unchecked: the main thread touches it only before the loop's thread starts and after it was joined.
final class LoadLoop<Network: LoadNetwork>: Load, @unchecked Sendable {
    /// How long the thread sleeps at most, so that it sees the end of a run whose server says nothing more.
    static var waitMax: Int64 { 50_000_000 }
    /// After this many requests that were due at once, the loop sends them and reads the clock again.
    static var batchMax: Int { 32 }

    var recorder = Recorder(operationCount: Operation.allCases.count, isPaced: false)
    private(set) var connectionsLost = 0
    private(set) var busyShare = 0.0
    var sessions: [Session] { workload.sessions }
    let live = LiveCounters()

    let network: Network
    var workload: Workload
    let lanes: [LoadLane]
    /// The periods of the present run.
    var periods: RunPeriods
    var isClosed = true
    var think = Duration.zero
    var arrivals: Arrivals?
    /// When the first request of the schedule that was not sent yet is due.
    var nextArrival: Instant?
    var outstandingMax = 0
    var whenFull = Pacing.WhenFull.queue
    /// True if a request found no room. `roomSince` is the time from which there was room again.
    var isFull = false
    var roomSince: Instant
    var pending = PendingSteps()
    var requestsInFlight = 0
    var now: Instant
    /// Nothing new is begun any more.
    var isStopping = false
    var nextLane = 0
    /// Lanes with output that was written outside of their turns.
    var unflushed: [Int] = []
    private var openLanes: Int
    private var sliceEnd: Instant
    /// When counting began, and the processor time that the thread had used until then.
    private var busyFrom: (time: Instant, nanoseconds: Int64)?

    /// `slotsPerLane`: how many requests each connection may have on its way.
    init(_ workload: Workload, over network: Network, slotsPerLane: Int) throws(BenchError) {
        guard slotsPerLane <= network.streamsMax else {
            throw BenchError(
                .notReady, "\(slotsPerLane) requests in flight: the server takes \(network.streamsMax) on a connection")
        }
        self.workload = workload
        self.network = network
        lanes = network.links.map { _ in LoadLane(slotCount: slotsPerLane) }
        openLanes = lanes.count
        now = network.now()
        roomSince = now
        sliceEnd = now
        periods = RunPeriods(from: now, warmup: .zero, counted: .zero, drain: .zero)
    }

    func run(_ periods: RunPeriods, _ pacing: Pacing, isInterrupted: () -> Bool) throws(BenchError) {
        begin(periods, pacing)
        if isClosed { try fillLanes() }
        var deadline = periods.drainUntil
        while openLanes > 0 {
            now = network.now()
            endSlices()
            if isInterrupted() {
                nextArrival = nil
                deadline = min(deadline, now.advanced(by: .seconds(1)))
                isStopping = true
            }
            isStopping = isStopping || now >= periods.countUntil
            // Steps of journeys that are due later are dropped; requests that a schedule had due in time are sent.
            if isStopping { pending.removeAll() }
            try startDue()
            try flushAll()
            live.set(inFlight: requestsInFlight)
            if isOver || now >= deadline { break }
            let readyCount = try network.wait(nanoseconds: waitNanoseconds)
            if readyCount == 0 { continue }
            now = network.now()
            for event in 0..<readyCount {
                let index = network.readyLink(at: event)
                try turn(lanes[index], index)
            }
        }
        let hasEndedEarly = isClosed && openLanes > 0 && !isStopping
        end()
        guard !hasEndedEarly else {
            throw BenchError(.failed, "the run ended early: no connection took further requests (GOAWAY)")
        }
    }

    private func begin(_ periods: RunPeriods, _ pacing: Pacing) {
        self.periods = periods
        now = network.now()
        pending.removeAll()
        workload.endJourneys()
        isStopping = false
        isFull = false
        roomSince = periods.begin
        sliceEnd = periods.countFrom.advanced(by: periods.slice)
        (busyFrom, busyShare) = (nil, 0)
        switch pacing {
        case .closed(_, let think):
            isClosed = true
            self.think = think
            recorder = Recorder(
                operationCount: Operation.allCases.count, isPaced: think > .zero || workload.hasJourneys)
        case .open(let arrivals, let outstandingMax, let whenFull):
            isClosed = false
            think = .zero
            self.arrivals = arrivals
            self.outstandingMax = outstandingMax
            self.whenFull = whenFull
            recorder = Recorder(operationCount: Operation.allCases.count, isPaced: true)
            // The sender's own wait for a processor would count as the server's time.
            ThreadPriority.takeShortTurns()
            takeArrival()
        }
    }

    private func fillLanes() throws(BenchError) {
        for (index, lane) in lanes.enumerated() where !lane.isLost {
            for slot in lane.slots.indices { start(slot, of: index, intended: now) }
            try flush(lane, index)
        }
    }

    /// Nothing is on its way, and nothing is to be sent any more.
    private var isOver: Bool {
        requestsInFlight == 0 && pending.isEmpty && (isClosed ? isStopping || hasNoRoomLeft : nextArrival == nil)
    }

    private var hasNoRoomLeft: Bool { lanes.allSatisfy { $0.isLost || $0.isLeaving } }

    private var waitNanoseconds: Int64 {
        var next = min(now.advanced(byNanoseconds: Self.waitMax), sliceEnd)
        if let step = pending.first, !isFull { next = min(next, step.at) }
        if let due = nextArrival, !isFull { next = min(next, due) }
        return max(0, next.nanoseconds(since: now))
    }

    private func endSlices() {
        if busyFrom == nil, now >= periods.countFrom { busyFrom = (now, OSThread.processorNanoseconds) }
        while now >= sliceEnd, sliceEnd <= periods.drainUntil {
            recorder.endSlice(inFlight: requestsInFlight)
            if let slice = recorder.slices.last { live.publish(slice, number: recorder.slices.count) }
            if sliceEnd <= periods.countUntil { noteBusyShare() }
            sliceEnd = sliceEnd.advanced(by: periods.slice)
        }
    }

    private func noteBusyShare() {
        guard let busyFrom else { return }
        let passed = now.nanoseconds(since: busyFrom.time)
        guard passed > 0 else { return }
        busyShare = Double(OSThread.processorNanoseconds - busyFrom.nanoseconds) / Double(passed)
    }

    /// Counts the requests that are left at the end: they were not answered, or not even sent.
    private func end() {
        let reason = openLanes == 0 ? "CONNECTION_LOST" : "SERVER_TOO_FAR_BEHIND"
        while let due = nextArrival {
            if periods.counts(due) { recorder.wasNotSent(reason) }
            takeArrival()
        }
        for (index, lane) in lanes.enumerated() { failAll(lane, index, "UNANSWERED") }
        recorder.endSlice(inFlight: 0)
        live.set(inFlight: 0)
    }

    /// Requests without an answer always count: that is no part of a warm-up or an end.
    private func failAll(_ lane: LoadLane, _ index: Int, _ reason: String) {
        for slot in lane.slots.indices where lane.slots[slot].isBusy {
            fail(lane.slots[slot], reason, counts: true)
            free(slot, of: lane)
        }
    }

    func lose(_ lane: LoadLane, _ index: Int) {
        lane.isLost = true
        openLanes -= 1
        connectionsLost += 1
        network.forget(index)
        failAll(lane, index, "CONNECTION_LOST")
    }

    /// Sends the output. The part that the socket does not take is sent when it is writable again.
    func flush(_ lane: LoadLane, _ index: Int) throws(BenchError) {
        let link = network.links[index]
        lane.needsFlush = false
        while link.hasOutput {
            switch link.send() {
            case .bytes: continue
            case .failed: return lose(lane, index)
            case .wouldBlock: return try watch(lane, index, forWriting: true)
            }
        }
        try watch(lane, index, forWriting: false)
    }

    func flushAll() throws(BenchError) {
        guard !unflushed.isEmpty else { return }
        for index in unflushed where !lanes[index].isLost { try flush(lanes[index], index) }
        unflushed.removeAll(keepingCapacity: true)
    }

    private func watch(_ lane: LoadLane, _ index: Int, forWriting: Bool) throws(BenchError) {
        guard lane.isWatchedForWriting != forWriting else { return }
        try network.watch(index, forWriting: forWriting)
        lane.isWatchedForWriting = forWriting
    }
}
