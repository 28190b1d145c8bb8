import Base

/// When a run begins, counts and ends.
struct RunPeriods: Sendable {
    let begin: Instant
    let countFrom: Instant
    let countUntil: Instant
    /// The time at which the wait for missing answers ends.
    let drainUntil: Instant
    /// The length of a slice of the series of results.
    let slice: Duration

    /// The most slices, also of a run of days.
    static let slicesMax = 3_600

    init(from begin: Instant, warmup: Duration, counted: Duration, drain: Duration) {
        self.begin = begin
        countFrom = begin.advanced(by: warmup)
        countUntil = countFrom.advanced(by: counted)
        drainUntil = countUntil.advanced(by: drain)
        let seconds = counted.microseconds / 1_000_000
        slice = .seconds(max(1, (seconds + Int64(Self.slicesMax) - 1) / Int64(Self.slicesMax)))
    }

    func counts(_ time: Instant) -> Bool { countFrom <= time && time < countUntil }
}

/// How a loop decides when to send the next request.
enum Pacing: Sendable {
    /// An answer is followed by the next request, after a time to think.
    case closed(inFlight: Int, think: Duration)
    /// Requests are due at their times, whether the server keeps up or not. At most `outstandingMax` of this loop's are
    /// on their way at once.
    case open(Arrivals, outstandingMax: Int, whenFull: WhenFull)

    /// The treatment of a request that is due while as many as allowed are on their way.
    enum WhenFull: String, CaseIterable, Sendable {
        /// It waits, and its response time goes on.
        case queue
        /// It is not sent, and counted as not sent.
        case skip
    }
}
