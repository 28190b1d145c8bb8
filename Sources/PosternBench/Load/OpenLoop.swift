import Base
import Messages
import Wire

/// Requests at a steady rate, whether the server keeps up or not. What is measured begins when a request was due, not
/// when it was sent: a server that stands still for a second shows that second in each request that was due in it.
///
/// Made and read by the main thread, run by one other.
final class OpenLoop: @unchecked Sendable {
    // Unchecked: the main thread touches it only before the loop's thread starts and after it was joined.

    private struct InFlight {
        let operation: Operation
        let context: Workload.Context
        let due: Instant
    }

    private final class Lane {
        let connection: Connection
        var calls: [UInt32: InFlight] = [:]
        var isLost = false

        init(_ connection: Connection) { self.connection = connection }
    }

    /// By the operation's raw value; of the requests that were due while it counted.
    private(set) var outcomes = Operation.allCases.map { _ in Outcome() }
    /// Requests that were due and could not be sent, by reason.
    private(set) var unsent: [String: Int] = [:]
    /// Requests that were sent more than `lateness` after they were due: this process was late, not the server.
    private(set) var lateCount = 0
    private(set) var connectionsLost = 0
    var sessions: [Session] { workload.sessions }
    private var workload: Workload
    private let lanes: [Lane]
    private let poll: EventPoll
    private let interval: Duration
    private var nextLane = 0
    /// A server that is this far behind has failed: what is due then is not sent.
    static let inFlightPerConnectionMax = 32
    static let lateness = Duration.milliseconds(1)
    /// A thread that waits no longer than this sees soon enough that its run is interrupted.
    private static let waitMax = Duration.milliseconds(50)
    private var countFrom = Instant.now

    /// `perSecond` requests, spread over `connections`.
    init(
        _ workload: Workload, address: ServerAddress, authorization: Text, connections: Int, perSecond: Int
    ) throws(BenchError) {
        self.workload = workload
        poll = try EventPoll()
        interval = .nanoseconds(1_000_000_000 / Int64(perSecond))
        var lanes: [Lane] = []
        for number in 0..<connections {
            let connection = try Connection(to: address, authorization: authorization)
            try poll.add(connection.descriptor, number: number)
            lanes.append(Lane(connection))
        }
        self.lanes = lanes
    }

    /// Sends what is due from `begin` to `end`, then waits up to `drain` for the answers. What is due before
    /// `countFrom` is not counted.
    func run(
        from begin: Instant, countFrom: Instant? = nil, until end: Instant, drain: Duration,
        isInterrupted: () -> Bool = { false }
    ) throws(BenchError) {
        // The sender's own wait for a processor would count as the server's time.
        ThreadPriority.takeShortTurns()
        self.countFrom = countFrom ?? begin
        var due = begin
        var end = end
        let last = end.advanced(by: drain)
        while true {
            let now = Instant.now
            if isInterrupted() { end = min(end, now) }
            while due < end, due <= now {
                start(due: due, now: now)
                due = due.advanced(by: interval)
            }
            try flush()
            if due >= end, lanes.allSatisfy({ $0.calls.isEmpty }) || now >= last { break }
            let next = due < end ? min(due, now.advanced(by: Self.waitMax)) : now.advanced(by: .milliseconds(1))
            let count = try poll.wait(nanoseconds: next.nanoseconds(since: .now))
            for event in 0..<count { receive(lanes[poll.number(at: event)]) }
        }
        for lane in lanes { fail(lane, "UNANSWERED") }
    }

    private func start(due: Instant, now: Instant) {
        nextLane = (nextLane + 1) % lanes.count
        let lane = lanes[nextLane]
        guard !lane.isLost, lane.calls.count < Self.inFlightPerConnectionMax, let stream = lane.connection.takeStream()
        else {
            unsent[lane.isLost ? "CONNECTION_LOST" : "SERVER_TOO_FAR_BEHIND", default: 0] += 1
            return
        }
        if due >= countFrom, now > due.advanced(by: Self.lateness) { lateCount += 1 }
        let (operation, context) = workload.appendRequest(stream: stream, to: &lane.connection.output)
        lane.calls[stream] = InFlight(operation: operation, context: context, due: due)
    }

    private func flush() throws(BenchError) {
        for lane in lanes where !lane.isLost {
            sending: while !lane.connection.output.isEmpty {
                switch lane.connection.send() {
                case .bytes: continue
                case .wouldBlock: break sending
                case .failed:
                    lose(lane)
                    break sending
                }
            }
        }
    }

    private func receive(_ lane: Lane) {
        guard !lane.isLost else { return }
        switch lane.connection.receive() {
        case .bytes(0), .failed: return lose(lane)
        case .wouldBlock: return
        case .bytes: break
        }
        let now = Instant.now
        lane.connection.takeFrames { header, payload in
            if header.type == .ping, !header.flags.contains(.ack), payload.count == 8 {
                let opaque = UInt64(bigEndian: payload.loadUnaligned(as: UInt64.self))
                return ControlFrame.ping(opaque, ack: true).append(to: &lane.connection.output)
            }
            guard let result = Connection.result(header, payload),
                let call = lane.calls.removeValue(forKey: header.stream)
            else { return }
            settle(call, result, now)
        }
    }

    private func settle(_ call: InFlight, _ result: CallResult, _ now: Instant) {
        switch result {
        case .ok(let message):
            guard workload.answered(call.operation, call.context, message) else {
                return fail(call, "UNEXPECTED_ANSWER")
            }
            guard call.due >= countFrom else { return }
            let nanoseconds = UInt64(max(0, now.nanoseconds(since: call.due)))
            outcomes[call.operation.rawValue].latency.record(nanoseconds)
        case .refused(let reason): fail(call, reason)
        }
    }

    private func fail(_ call: InFlight, _ reason: String) {
        workload.failed(call.operation, call.context)
        guard call.due >= countFrom else { return }
        outcomes[call.operation.rawValue].errors[reason, default: 0] += 1
    }

    private func fail(_ lane: Lane, _ reason: String) {
        for call in lane.calls.values { fail(call, reason) }
        lane.calls = [:]
    }

    private func lose(_ lane: Lane) {
        lane.isLost = true
        connectionsLost += 1
        poll.remove(lane.connection.descriptor)
        fail(lane, "CONNECTION_LOST")
    }
}
