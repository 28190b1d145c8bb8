// One thread with an epoll of its own and a share of the connections. It shares the CPUs with the server it measures: a
// request costs it a copy, an answer a look at its first bytes, a batch of either one system call.

import Base
import Messages
import Wire

/// When a run warms up, counts and ends.
struct Schedule: Sendable {
    let countFrom: Instant
    let countUntil: Instant
    /// Answers that have not come by then are given up.
    let drainUntil: Instant

    init(from start: Instant, warmup: Duration, counted: Duration, drain: Duration) {
        countFrom = start.advanced(by: warmup)
        countUntil = countFrom.advanced(by: counted)
        drainUntil = countUntil.advanced(by: drain)
    }

    func counts(_ now: Instant) -> Bool { countFrom <= now && now < countUntil }
}

/// Keeps `inFlight` requests going on each of its connections: an answer is followed by the next request.
///
/// Made and read by the main thread, run by one other.
// Unchecked: the main thread touches it only before the driver's thread starts and after it was joined.
final class Driver: @unchecked Sendable {
    /// How long the thread sleeps at most, so that it sees the end of a run whose server says nothing more.
    private static let waitMilliseconds: Int32 = 50

    /// By the operation's raw value.
    private(set) var outcomes = Operation.allCases.map { _ in Outcome() }
    private(set) var connectionsLost = 0
    var sessions: [Session] { workload.sessions }

    private var workload: Workload
    private let lanes: [Lane]
    private let poll: EventPoll
    private var openLanes: Int
    private var requestsInFlight = 0
    private var now = Instant.now
    private var isStopping = false

    /// Opens its connections, one after the other.
    init(_ workload: Workload, address: ServerAddress, authorization: Text, connections: Int, inFlight: Int)
        throws(BenchError)
    {
        self.workload = workload
        poll = try EventPoll()
        var lanes: [Lane] = []
        for _ in 0..<connections {
            let connection = try Connection(to: address, authorization: authorization)
            let streamsMax = Int(connection.server.streamsMax)
            guard streamsMax == 0 || inFlight <= streamsMax else {
                throw BenchError(.notReady, "--in-flight \(inFlight): the server takes \(streamsMax) requests at once")
            }
            lanes.append(Lane(connection, slotCount: inFlight))
        }
        self.lanes = lanes
        openLanes = lanes.count
        for (index, lane) in lanes.enumerated() {
            try poll.add(lane.connection.descriptor, number: index)
        }
    }

    /// Runs to the end of `schedule`, or until `isInterrupted` says yes.
    func run(_ schedule: Schedule, isInterrupted: () -> Bool) throws(BenchError) {
        now = Instant.now
        for (index, lane) in lanes.enumerated() {
            for slot in lane.slots.indices { start(slot, of: lane) }
            try flush(lane, index)
        }
        while openLanes > 0, requestsInFlight > 0 {
            let readyCount = try poll.wait(milliseconds: Self.waitMilliseconds)
            now = Instant.now
            isStopping = isStopping || now >= schedule.countUntil || isInterrupted()
            if now >= schedule.drainUntil { break }
            for event in 0..<readyCount {
                let index = poll.number(at: event)
                try turn(lanes[index], index, schedule)
            }
        }
        for lane in lanes { failAll(lane, "UNANSWERED") }
    }

    private func turn(_ lane: Lane, _ index: Int, _ schedule: Schedule) throws(BenchError) {
        guard !lane.isLost else { return }
        switch lane.connection.receive() {
        case .bytes(0), .failed: return lose(lane)
        case .bytes:
            now = Instant.now
            let counts = schedule.counts(now)
            lane.connection.takeFrames { header, payload in received(header, payload, lane, counts: counts) }
        case .wouldBlock: break
        }
        try flush(lane, index)
    }

    private func received(_ header: FrameHeader, _ payload: UnsafeRawBufferPointer, _ lane: Lane, counts: Bool) {
        switch header.type {
        case .response:
            guard let slot = lane.slot(of: header.stream) else { return }
            settle(slot, of: lane, Answer(reading: payload), counts: counts)
            if isStopping || lane.isLeaving { free(slot, of: lane) } else { start(slot, of: lane) }
        case .cancel:
            guard let slot = lane.slot(of: header.stream) else { return }
            fail(slot, of: lane, "CANCELLED_BY_SERVER", counts: counts)
            if isStopping || lane.isLeaving { free(slot, of: lane) } else { start(slot, of: lane) }
        case .ping where !header.flags.contains(.ack) && payload.count == 8:
            let opaque = UInt64(bigEndian: payload.loadUnaligned(as: UInt64.self))
            ControlFrame.ping(opaque, ack: true).append(to: &lane.connection.output)
        case .goAway: lane.isLeaving = true
        default: break
        }
    }

    private func start(_ index: Int, of lane: Lane) {
        guard let stream = lane.connection.takeStream() else {
            lane.isLeaving = true
            return free(index, of: lane)
        }
        let (operation, context) = workload.appendRequest(stream: stream, to: &lane.connection.output)
        if !lane.slots[index].isBusy { requestsInFlight += 1 }
        lane.slots[index] = Lane.Slot(stream: stream, context: context, operation: operation, started: now)
    }

    private func free(_ index: Int, of lane: Lane) {
        if lane.slots[index].isBusy { requestsInFlight -= 1 }
        lane.slots[index].stream = 0
    }

    private func settle(_ index: Int, of lane: Lane, _ answer: Answer, counts: Bool) {
        let slot = lane.slots[index]
        switch answer {
        case .ok(let message):
            guard workload.answered(slot.operation, slot.context, message) else {
                return fail(index, of: lane, "UNEXPECTED_ANSWER", counts: counts)
            }
            guard counts else { return }
            outcomes[slot.operation.rawValue].latency.record(UInt64(max(0, now.nanoseconds(since: slot.started))))
        case .failure(let status): fail(index, of: lane, Answer.reason(ofStatus: status), counts: counts)
        case .malformed: fail(index, of: lane, "MALFORMED_ANSWER", counts: counts)
        }
    }

    private func fail(_ index: Int, of lane: Lane, _ reason: String, counts: Bool) {
        let slot = lane.slots[index]
        workload.failed(slot.operation, slot.context)
        if counts { outcomes[slot.operation.rawValue].errors[reason, default: 0] += 1 }
    }

    /// Requests that no answer came to count whenever that happens: it is no part of a warm-up or an end.
    private func failAll(_ lane: Lane, _ reason: String) {
        for index in lane.slots.indices where lane.slots[index].isBusy {
            fail(index, of: lane, reason, counts: true)
            free(index, of: lane)
        }
    }

    private func lose(_ lane: Lane) {
        lane.isLost = true
        openLanes -= 1
        connectionsLost += 1
        poll.remove(lane.connection.descriptor)
        failAll(lane, "CONNECTION_LOST")
    }

    /// Sends what there is; what the socket does not take is sent when it is writable again.
    private func flush(_ lane: Lane, _ index: Int) throws(BenchError) {
        while !lane.connection.output.isEmpty {
            switch lane.connection.send() {
            case .bytes: continue
            case .failed: return lose(lane)
            case .wouldBlock:
                return try watch(lane, index, forWriting: true)
            }
        }
        try watch(lane, index, forWriting: false)
    }

    private func watch(_ lane: Lane, _ index: Int, forWriting: Bool) throws(BenchError) {
        guard lane.isWatchedForWriting != forWriting else { return }
        try poll.watch(lane.connection.descriptor, number: index, forWriting: forWriting)
        lane.isWatchedForWriting = forWriting
    }
}

/// A connection with a fixed number of requests in flight.
private final class Lane {
    struct Slot {
        /// 0: nothing is in flight here.
        var stream: UInt32 = 0
        var context = Workload.noContext
        var operation = Operation.health
        var started = Instant(nanoseconds: 0)

        var isBusy: Bool { stream != 0 }
    }

    let connection: Connection
    var slots: [Slot]
    var isLost = false
    /// GOAWAY came, or the stream ids are used up: no new requests.
    var isLeaving = false
    var isWatchedForWriting = false
    private var nextSlot = 0

    init(_ connection: Connection, slotCount: Int) {
        self.connection = connection
        slots = [Slot](repeating: Slot(), count: slotCount)
    }

    /// Answers mostly come in the order of their requests, so that the slot behind the last one found is the first
    /// guess.
    func slot(of stream: UInt32) -> Int? {
        let guess = nextSlot < slots.count ? nextSlot : 0
        guard let found = slots[guess].stream == stream ? guess : slots.firstIndex(where: { $0.stream == stream })
        else {
            return nil
        }
        nextSlot = found + 1
        return found
    }
}
