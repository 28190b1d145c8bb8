import Base

/// The order of one tenant's waiting elements, so that the sources they come from share the tenant's turns.
///
/// A source is whatever the owner tells apart, such as the address of an end user. Each element gets a start time: the
/// time at which the source's last element should end, or the present if that is past. The element with the earliest
/// start goes first; equal ones go in the order in which they came. So a busy source's elements stand behind the first
/// ones of all others (start-time fair queueing, Goyal, Vin, Cheng, SIGCOMM 1996). With each element that begins, the
/// time advances by its expected cost, divided by the number of sources that wait. So elements of ever new sources do
/// not hold up an older element for ever (weighted fair queueing, Demers, Keshav, Shenker, SIGCOMM 1989).
///
/// It holds a place for each element of the tenant, at the same index.
struct SourceOrder: Sendable {
    private struct Place {
        let source: Text
        let start: Int64
        let cost: Int64
    }

    private struct Source {
        /// When its last element should end.
        var end: Int64
        var waitingCount = 0
    }

    private static let costMax: Int64 = 3_600_000_000_000
    /// With more sources than this, and than waiting elements, sources without waiting elements are forgotten.
    private static let sourcesKept = 1_024

    private var places: [Place] = []
    private var sources: [Text: Source] = [:]
    private var waitingSourceCount = 0
    /// How many sources have a number of elements waiting, by this number. The last entry is not 0.
    private var sourceCounts: [Int] = [0]
    /// In nanoseconds of expected work.
    private var time: Int64 = 0

    /// The number of sources that are remembered.
    var sourceCount: Int { sources.count }

    func count(of source: Text) -> Int { sources[source]?.waitingCount ?? 0 }

    /// The number of elements of the source that has most of them.
    var longestCount: Int { sourceCounts.count - 1 }

    /// Makes a place for an element that is expected to take `cost` nanoseconds. Returns the element's index.
    mutating func insert(_ source: Text, cost: Int64) -> Int {
        if sources.count >= max(Self.sourcesKept, 2 * places.count) { forgetIdleSources() }
        let cost = min(max(cost, FairQueue<Void>.costMin), Self.costMax)
        var account = sources[source] ?? Source(end: time)
        let start = max(time, account.end)
        account.end = start + cost
        account.waitingCount += 1
        noteSource(from: account.waitingCount - 1, to: account.waitingCount)
        sources[source] = account
        let index = indexBehind(start)
        places.insert(Place(source: source, start: start, cost: cost), at: index)
        return index
    }

    /// The element at `index` begins.
    mutating func begin(at index: Int) {
        let place = places[index]
        let advanced = max(time, place.start) + place.cost / Int64(waitingSourceCount)
        remove(at: index)
        guard !places.isEmpty else { return }
        // Ahead of what waits by one element at most: a source that comes then waits for two of each other at most.
        // Those before this element do not count, because they may not begin yet.
        let next = places[index...].first?.start ?? advanced
        time = min(advanced, max(place.start, next + place.cost))
    }

    /// The element at `index` leaves and will not begin. Its source is not charged if it is the source's last element.
    mutating func leave(at index: Int) {
        let place = places[index]
        if let end = sources[place.source]?.end, end == place.start + place.cost {
            sources[place.source]?.end = place.start
        }
        remove(at: index)
    }

    /// The index of the last element of a source that has most elements, if these are at least `countMin`.
    func lastOfLongest(countMin: Int) -> Int? {
        guard longestCount >= max(1, countMin) else { return nil }
        return places.lastIndex { count(of: $0.source) == longestCount }
    }

    private mutating func remove(at index: Int) {
        let source = places.remove(at: index).source
        guard !places.isEmpty else { return reset() }
        sources[source]!.waitingCount -= 1
        let count = sources[source]!.waitingCount
        noteSource(from: count + 1, to: count)
    }

    /// A source has another number of elements waiting, by one.
    private mutating func noteSource(from before: Int, to now: Int) {
        if before == 0 { waitingSourceCount += 1 } else { sourceCounts[before] -= 1 }
        if now == 0 { waitingSourceCount -= 1 }
        if now == sourceCounts.count { sourceCounts.append(0) }
        if now > 0 { sourceCounts[now] += 1 }
        if sourceCounts.count > 1, sourceCounts.last == 0 { sourceCounts.removeLast() }
    }

    private func indexBehind(_ start: Int64) -> Int {
        var range = places.startIndex..<places.endIndex
        while let middle = range.isEmpty ? nil : range.lowerBound + range.count / 2 {
            if places[middle].start > start {
                range = range.lowerBound..<middle
            } else {
                range = middle + 1..<range.upperBound
            }
        }
        return range.lowerBound
    }

    private mutating func forgetIdleSources() { sources = sources.filter { $0.value.waitingCount > 0 } }

    private mutating func reset() {
        sources.removeAll(keepingCapacity: sources.count <= 16)
        (time, waitingSourceCount, sourceCounts) = (0, 0, [0])
    }
}
