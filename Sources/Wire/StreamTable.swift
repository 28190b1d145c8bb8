// The streams in flight on one connection. Ids only grow, so an array ordered by id is enough: opening appends, the
// common case (the newest stream finishes first) removes the last, and lookup is a binary search in at most 256.

protocol StreamRecord: Sendable {
    var id: UInt32 { get }
}

struct StreamTable<Record: StreamRecord>: Sendable {
    private(set) var records: [Record] = []

    var count: Int { records.count }
    var isEmpty: Bool { records.isEmpty }

    func index(of id: UInt32) -> Int? {
        var low = 0
        var high = records.count
        if let last = records.last, last.id == id { return high - 1 }
        while low < high {
            let middle = (low + high) / 2
            if records[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low < records.count && records[low].id == id ? low : nil
    }

    mutating func append(_ record: Record) {
        precondition(records.last.map { $0.id < record.id } ?? true, "stream \(record.id) opened out of order")
        records.append(record)
    }

    subscript(index: Int) -> Record {
        get { records[index] }
        set { records[index] = newValue }
    }

    @discardableResult
    mutating func remove(at index: Int) -> Record {
        index == records.count - 1 ? records.removeLast() : records.remove(at: index)
    }

    /// Gives back the memory of the table if there are no streams.
    mutating func releaseIfIdle() { if records.isEmpty { records = [] } }

    /// Removes and returns all above `id`.
    mutating func removeAll(above id: UInt32) -> [UInt32] {
        let kept = records.firstIndex { $0.id > id } ?? records.count
        let removed = records[kept...].map(\.id)
        records.removeSubrange(kept...)
        return removed
    }
}
