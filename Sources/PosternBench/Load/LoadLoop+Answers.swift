import Base
import Messages
import Wire

// The end of requests.
extension LoadLoop {
    /// Reads a ready link, and sends the requests that follow.
    func turn(_ lane: LoadLane, _ index: Int) throws(BenchError) {
        guard !lane.isLost else { return }
        let link = network.links[index]
        switch link.receive() {
        case .bytes(0), .failed: return lose(lane, index)
        case .bytes:
            now = network.now()
            link.takeFrames { header, payload in received(header, payload, lane, index) }
        case .wouldBlock: break
        }
        try flush(lane, index)
    }

    private func received(_ header: FrameHeader, _ payload: UnsafeRawBufferPointer, _ lane: LoadLane, _ index: Int) {
        switch header.type {
        case .response:
            guard let slot = lane.slot(of: header.stream) else { return }
            settle(lane.slots[slot], Answer(reading: payload))
            goOn(slot, of: lane, index)
        case .cancel:
            guard let slot = lane.slot(of: header.stream) else { return }
            fail(lane.slots[slot], "CANCELLED_BY_SERVER", counts: counts(lane.slots[slot]))
            goOn(slot, of: lane, index)
        case .ping where !header.flags.contains(.ack) && payload.count == 8:
            let opaque = UInt64(bigEndian: payload.loadUnaligned(as: UInt64.self))
            ControlFrame.ping(opaque, ack: true).append(to: &network.links[index].output)
        case .goAway: lane.isLeaving = true
        default: break
        }
    }

    /// Goes on after an answer, in the same slot of a closed loop.
    private func goOn(_ slot: Int, of lane: LoadLane, _ index: Int) {
        let mayGoOn = !isStopping && !(isClosed && lane.isLeaving)
        let journey = lane.slots[slot].request.journey
        if journey != Workload.noContext {
            if mayGoOn, let wait = workload.wait(inJourney: journey) {
                return goOn(journey, after: wait, slot, of: lane, index)
            }
            workload.end(journey: journey)
        }
        guard isClosed, mayGoOn else { return free(slot, of: lane) }
        goOn(Workload.noContext, after: think, slot, of: lane, index)
    }

    private func goOn(_ journey: Int32, after wait: Duration, _ slot: Int, of lane: LoadLane, _ index: Int) {
        if isClosed, wait == .zero { return start(slot, of: index, intended: now, journey: journey) }
        // A request of a closed loop keeps its place.
        let place = isClosed ? (index, slot) : nil
        pending.insert(PendingSteps.Step(at: now.advanced(by: wait), place: place, journey: journey))
        free(slot, of: lane)
    }

    /// Whether a request counts: by the time it was due if it is of a schedule, otherwise by the time it was answered.
    func counts(_ slot: LoadLane.Slot) -> Bool { periods.counts(recorder.isPaced ? slot.intended : now) }

    private func settle(_ slot: LoadLane.Slot, _ answer: Answer) {
        let counts = counts(slot)
        switch answer {
        case .ok(let message):
            guard workload.answered(slot.request, message) else {
                return fail(slot, "UNEXPECTED_ANSWER", counts: counts)
            }
            if periods.counts(now) { recorder.answeredInTime(slot.request.operation.rawValue) }
            guard counts else { return }
            recorder.succeeded(slot.request.operation.rawValue, intended: slot.intended, sent: slot.sent, now: now)
        case .failure(let status): fail(slot, Answer.reason(ofStatus: status), counts: counts)
        case .malformed: fail(slot, "MALFORMED_ANSWER", counts: counts)
        }
    }

    func fail(_ slot: LoadLane.Slot, _ reason: String, counts: Bool) {
        workload.failed(slot.request)
        if counts { recorder.failed(slot.request.operation.rawValue, reason, intended: slot.intended, now: now) }
    }
}
