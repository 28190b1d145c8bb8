import Base

/// A connection of a load loop with room for a fixed number of requests in flight.
final class LoadLane {
    struct Slot {
        /// 0: nothing is in flight here.
        var stream: UInt32 = 0
        var request = LoadRequest()
        /// When the request was meant to be sent, and when it was sent.
        var intended = Instant(nanoseconds: 0)
        var sent = Instant(nanoseconds: 0)

        var isBusy: Bool { stream != 0 }
    }

    var slots: [Slot]
    var busyCount = 0
    var isLost = false
    /// GOAWAY came, or the stream ids are used up: no new requests.
    var isLeaving = false
    var isWatchedForWriting = false
    /// There is output that was not sent yet.
    var needsFlush = false
    private var nextSlot = 0
    private var nextFree = 0

    init(slotCount: Int) { slots = [Slot](repeating: Slot(), count: slotCount) }

    var hasRoom: Bool { !isLost && !isLeaving && busyCount < slots.count }

    /// The slot of a stream. Answers mostly come in the order of their requests, so the slot after the last one found
    /// is the first guess. Nil when no request has this stream.
    func slot(of stream: UInt32) -> Int? {
        guard stream != 0 else { return nil }
        let guess = nextSlot < slots.count ? nextSlot : 0
        guard let found = slots[guess].stream == stream ? guess : slots.firstIndex(where: { $0.stream == stream })
        else {
            return nil
        }
        nextSlot = found + 1
        return found
    }

    /// A slot that is free. The lane must have room.
    func freeSlot() -> Int {
        while slots[nextFree].isBusy { nextFree = nextFree + 1 == slots.count ? 0 : nextFree + 1 }
        return nextFree
    }
}

/// The facts about a request that a workload needs when the answer comes.
struct LoadRequest: Sendable {
    var operation = Operation.health
    /// The part of the workload's data that it used.
    var context = Workload.noContext
    /// The journey that it is a step of.
    var journey = Workload.noContext
}
