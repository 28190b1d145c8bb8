import Base
import Messages
import Wire

// How requests begin.
extension LoadLoop {
    /// Takes the next time from the schedule. A request that is due after the end of the run is not sent.
    func takeArrival() {
        guard let offset = arrivals?.next() else { return nextArrival = nil }
        let due = periods.begin.advanced(byNanoseconds: offset)
        nextArrival = due < periods.countUntil ? due : nil
    }

    /// Sends the requests that are due now.
    func startDue() throws(BenchError) {
        var sinceFlush = 0
        while let step = pending.first, step.at <= now {
            guard let (lane, slot) = step.place ?? takeRoom() else { return }
            pending.removeFirst()
            if !lanes[lane].isLost { startLater(slot, of: lane, intended: step.at, journey: step.journey) }
            try breathe(&sinceFlush)
        }
        while let due = nextArrival, due <= now {
            guard let (lane, slot) = takeRoom(forNew: true) else {
                guard whenFull == .skip else { return }
                if periods.counts(due) { recorder.wasNotSent("SKIPPED") }
                workload.takeRecorded()
                takeArrival()
                continue
            }
            if periods.counts(due) {
                recorder.wasOnItsOwn(from: max(due, roomSince), until: now, isInTime: now < periods.countUntil)
            }
            startLater(slot, of: lane, intended: due, journey: Workload.noContext)
            takeArrival()
            try breathe(&sinceFlush)
        }
    }

    private func startLater(_ slot: Int, of lane: Int, intended: Instant, journey: Int32) {
        start(slot, of: lane, intended: intended, journey: journey)
        if !lanes[lane].needsFlush { unflushed.append(lane) }
        lanes[lane].needsFlush = true
    }

    /// In a long batch, now and then sends the requests that are written, and reads the clock again.
    private func breathe(_ sinceFlush: inout Int) throws(BenchError) {
        sinceFlush += 1
        guard sinceFlush == Self.batchMax else { return }
        sinceFlush = 0
        try flushAll()
        now = network.now()
    }

    /// A place for one more request. Nil: there is none, and the loop is full.
    private func takeRoom(forNew isNew: Bool = false) -> (lane: Int, slot: Int)? {
        if isClosed || requestsInFlight < outstandingMax, !isNew || workload.canBegin {
            for _ in lanes.indices {
                nextLane = nextLane + 1 < lanes.count ? nextLane + 1 : 0
                if lanes[nextLane].hasRoom { return (nextLane, lanes[nextLane].freeSlot()) }
            }
        }
        isFull = true
        return nil
    }

    /// `journey`: the journey to go on with. Without it a new one begins.
    func start(_ slot: Int, of index: Int, intended: Instant, journey: Int32 = Workload.noContext) {
        let lane = lanes[index]
        let link = network.links[index]
        guard let stream = link.takeStream() else {
            lane.isLeaving = true
            return free(slot, of: lane)
        }
        let request = workload.appendRequest(stream: stream, journey: journey, to: &link.output)
        if !lane.slots[slot].isBusy {
            requestsInFlight += 1
            lane.busyCount += 1
        }
        lane.slots[slot] = LoadLane.Slot(stream: stream, request: request, intended: intended, sent: now)
        if periods.counts(now) { recorder.sent() }
    }

    func free(_ slot: Int, of lane: LoadLane) {
        if lane.slots[slot].isBusy {
            requestsInFlight -= 1
            lane.busyCount -= 1
        }
        lane.slots[slot].stream = 0
        if isFull {
            isFull = false
            roomSince = now
        }
    }
}
