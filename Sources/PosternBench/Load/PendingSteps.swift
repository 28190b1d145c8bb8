import Base

/// Requests that are due later, after a time to think. A heap with the earliest first.
struct PendingSteps: Sendable {
    struct Step: Sendable {
        var at: Instant
        /// The place that is kept for it; nil: any.
        var place: (lane: Int, slot: Int)?
        var journey: Int32
    }

    private var heap: [Step] = []

    var first: Step? { heap.first }
    var isEmpty: Bool { heap.isEmpty }
    var count: Int { heap.count }

    mutating func removeAll() { heap.removeAll() }

    mutating func insert(_ step: Step) {
        heap.append(step)
        var child = heap.count - 1
        while child > 0, heap[child].at < heap[(child - 1) / 2].at {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].at < heap[least].at {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
