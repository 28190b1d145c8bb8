/// How many requests a second are due over the time of a run: `5000`, `step 1000..10000 by 1000 every 20s`,
/// `line 100..5000 over 60s` or `burst 5000 for 2s every 10s over 500`.
struct RateSchedule: Equatable, Sendable {
    /// A stretch of time in which the rate stays or changes evenly.
    struct Segment: Equatable, Sendable {
        var seconds: Double
        /// Requests a second at its beginning and end.
        var from: Double
        var to: Double
    }

    /// Not empty. After the last segment its last rate goes on.
    let segments: [Segment]
    let description: String
    /// Whether the schedule has an end of its own: steps and lines have.
    let hasEnd: Bool

    static let rateMax = 1_000_000.0
    static let segmentsMax = 10_000

    init(segments: [Segment], description: String, hasEnd: Bool) {
        self.segments = segments
        self.description = description
        self.hasEnd = hasEnd
    }

    /// Always the same rate.
    init(perSecond: Int) {
        self.init(
            segments: [Segment(seconds: 1, from: Double(perSecond), to: Double(perSecond))],
            description: "\(perSecond)", hasEnd: false)
    }

    /// The length of its segments.
    var seconds: Double { segments.reduce(0) { $0 + $1.seconds } }

    /// The schedule with its first rate kept for this long before it.
    func warmedUp(for seconds: Double) -> RateSchedule {
        guard seconds > 0, let first = segments.first else { return self }
        let warmup = Segment(seconds: seconds, from: first.from, to: first.from)
        return RateSchedule(segments: [warmup] + segments, description: description, hasEnd: hasEnd)
    }

    /// The rate that is asked for on average between two times after its beginning.
    func average(from start: Double, to end: Double) -> Double {
        guard end > start else { return 0 }
        return (requests(until: end) - requests(until: start)) / (end - start)
    }

    /// How many requests are due until `end`.
    private func requests(until end: Double) -> Double {
        var requests = 0.0
        var passed = 0.0
        for segment in segments where passed < end {
            let time = min(segment.seconds, end - passed)
            let last = segment.from + (segment.to - segment.from) * time / segment.seconds
            requests += (segment.from + last) / 2 * time
            passed += segment.seconds
        }
        return requests + max(0, end - passed) * (segments.last?.to ?? 0)
    }
}

extension RateSchedule {
    init(parsing text: String) throws(UsageError) {
        let words = text.split(separator: " ").map(String.init)
        let segments: [Segment]
        switch words.first {
        case "step" where words.count == 6 && words[2] == "by" && words[4] == "every":
            segments = try Self.steps(Self.range(words[1]), by: Self.rate(words[3]), every: Self.duration(words[5]))
        case "line" where words.count == 4 && words[2] == "over":
            let (from, to) = try Self.range(words[1])
            segments = [Segment(seconds: try Self.duration(words[3]), from: from, to: to)]
        case "burst" where words.count == 8 && words[2] == "for" && words[4] == "every" && words[6] == "over":
            let (length, period) = (try Self.duration(words[3]), try Self.duration(words[5]))
            guard length < period else { throw UsageError("--rate: a burst must end before the next one begins") }
            segments = Self.bursts(try Self.rate(words[1]), for: length, every: period, over: try Self.rate(words[7]))
        default:
            guard words.count == 1 else { throw Self.malformed(text) }
            let rate = try Self.rate(words[0])
            segments = [Segment(seconds: 1, from: rate, to: rate)]
        }
        guard segments.contains(where: { $0.from > 0 || $0.to > 0 }) else {
            throw UsageError("--rate: \(text): nothing is ever due")
        }
        self.init(
            segments: segments, description: text, hasEnd: words.first == "step" || words.first == "line")
    }

    private static func steps(
        _ range: (from: Double, to: Double), by step: Double, every seconds: Double
    ) throws(UsageError) -> [Segment] {
        guard step > 0 else { throw UsageError("--rate: a step must change the rate") }
        let count = (abs(range.to - range.from) / step).rounded(.down) + 1
        guard count <= Double(segmentsMax) else { throw UsageError("--rate: at most \(segmentsMax) steps") }
        return (0..<Int(count)).map {
            let rate = range.from + (range.to < range.from ? -1 : 1) * step * Double($0)
            return Segment(seconds: seconds, from: rate, to: rate)
        }
    }

    /// The bursts of a day, in at most `segmentsMax` segments.
    private static func bursts(
        _ rate: Double, for length: Double, every period: Double, over base: Double
    ) -> [Segment] {
        let count = min(segmentsMax / 2, Int(90_000 / period) + 1)
        return (0..<count).flatMap { _ in
            [
                Segment(seconds: period - length, from: base, to: base),
                Segment(seconds: length, from: rate, to: rate),
            ]
        }
    }

    private static func malformed(_ text: String) -> UsageError {
        UsageError(
            """
            --rate: "\(text)" must be a number, 'step 1000..10000 by 1000 every 20s', 'line 100..5000 over 60s' or \
            'burst 5000 for 2s every 10s over 500'
            """)
    }

    private static func rate(_ text: String) throws(UsageError) -> Double {
        guard let rate = Int(text), rate >= 0, Double(rate) <= rateMax else {
            throw UsageError("--rate: \"\(text)\" must be a whole number of requests a second, at most 1000000")
        }
        return Double(rate)
    }

    private static func range(_ text: String) throws(UsageError) -> (from: Double, to: Double) {
        let dots = text.firstRange(of: "..")
        guard let dots else { throw malformed(text) }
        return (try rate(String(text[..<dots.lowerBound])), try rate(String(text[dots.upperBound...])))
    }

    /// `500ms`, `20s`, `2m`: above zero, at most a day.
    static func duration(_ text: String) throws(UsageError) -> Double {
        let units: [(name: String, seconds: Double)] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3_600)]
        guard let unit = units.first(where: { text.hasSuffix($0.name) }),
            let number = Int(text.dropLast(unit.name.count)), number > 0, Double(number) * unit.seconds <= 86_400
        else { throw UsageError("\"\(text)\" must be a time such as 500ms, 20s or 2m, at most a day") }
        return Double(number) * unit.seconds
    }
}
