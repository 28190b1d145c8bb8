import Glibc

/// How requests are spread over time at a given rate.
enum ArrivalPattern: String, CaseIterable, Sendable {
    /// Requests are independent of each other, as those of many users are.
    case poisson
    /// Requests follow one another at the same distance.
    case uniform
}

/// When requests are due, in nanoseconds from the beginning: known before the run from the schedule and the seed, and
/// the same in each run with them.
///
/// Threads share a schedule: with `share` k of n, every n-th arrival from the k-th on.
struct Arrivals: Sendable {
    private let segments: [RateSchedule.Segment]
    private let pattern: ArrivalPattern
    private let shareCount: Int
    private var random: SeededGenerator
    /// The segment that the last arrival was in, when that begins, and how far in it the arrival was; in seconds.
    private var segment = 0
    private var segmentStart = 0.0
    private var offset = 0.0
    private var isFirst = true
    private var skip: Int
    /// The times of a recorded load, instead of a schedule.
    private var recorded: ArraySlice<Int64>?

    init(_ schedule: RateSchedule, _ pattern: ArrivalPattern, seed: UInt64, share: (index: Int, of: Int) = (0, 1)) {
        // The last rate goes on.
        let last = schedule.segments.last?.to ?? 0
        segments = schedule.segments + [RateSchedule.Segment(seconds: .infinity, from: last, to: last)]
        self.pattern = pattern
        shareCount = share.of
        skip = share.index
        random = SeededGenerator(seed: seed ^ 0x6172_7269_7661_6C73)
    }

    /// Makes arrivals at these times.
    init(recorded times: [Int64]) {
        self.init(RateSchedule(perSecond: 1), .uniform, seed: 0)
        recorded = times[...]
    }

    /// Nil when nothing is due any more.
    mutating func next() -> Int64? {
        if recorded != nil { return recorded?.popFirst() }
        for _ in 0..<skip {
            guard advance() != nil else { return nil }
        }
        skip = shareCount - 1
        return advance()
    }

    /// Advances to the next arrival: until the rate has added up to the pattern's distance between two requests.
    private mutating func advance() -> Int64? {
        var requests = pattern == .poisson ? -log(1 - random.unit()) : isFirst ? 0 : 1
        isFirst = false
        while segment < segments.count {
            let current = segments[segment]
            if let time = Self.time(of: requests, in: current, from: offset) {
                offset += time
                let nanoseconds = ((segmentStart + offset) * 1e9).rounded()
                return nanoseconds < 9e18 ? Int64(nanoseconds) : nil
            }
            requests -= Self.requests(in: current, from: offset)
            // Rounding may have taken a little too much.
            requests = max(0, requests)
            segmentStart += current.seconds
            segment += 1
            offset = 0
        }
        return nil
    }

    private static func rate(in segment: RateSchedule.Segment, at offset: Double) -> Double {
        segment.seconds.isInfinite ? segment.from : segment.from + slope(of: segment) * offset
    }

    private static func slope(of segment: RateSchedule.Segment) -> Double {
        segment.seconds.isInfinite ? 0 : (segment.to - segment.from) / segment.seconds
    }

    /// How many requests are due in the rest of a segment.
    private static func requests(in segment: RateSchedule.Segment, from offset: Double) -> Double {
        let rate = rate(in: segment, at: offset)
        if segment.seconds.isInfinite { return rate > 0 ? .infinity : 0 }
        return (rate + segment.to) / 2 * (segment.seconds - offset)
    }

    /// How long it takes from `offset` on until `requests` are due; nil when the segment ends before.
    private static func time(of requests: Double, in segment: RateSchedule.Segment, from offset: Double) -> Double? {
        let left = Self.requests(in: segment, from: offset)
        guard requests < left || (requests == 0 && rate(in: segment, at: offset) > 0) else { return nil }
        if requests == 0 { return 0 }
        // The rate grows evenly: requests = rate × t + slope × t² / 2.
        let (rate, slope) = (rate(in: segment, at: offset), slope(of: segment))
        let root = max(0, rate * rate + 2 * slope * requests).squareRoot()
        return min(2 * requests / (rate + root), segment.seconds - offset)
    }
}
