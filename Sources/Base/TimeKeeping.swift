/// Decides what time it is from a wall clock that may be wrong, a clock that only counts elapsed time, and the store's
/// time mark. It is pure: the caller passes the readings.
///
/// The time is a line: a moment at which the time was known, and the time elapsed since. So a step of the wall clock
/// changes nothing by itself; `check` compares the two and decides.
///
/// | the wall clock | the time | sweeps |
/// |---|---|---|
/// | goes with the time, within `slack` | is corrected: forwards at once, back by running at half speed | go on |
/// | is new: a start, a believed jump (`unproven`) | is the wall clock's, never below `floor` | wait `provenAfter` |
/// | jumped ahead (`ahead`) | goes on as before until the jump has lasted `believedAfter` | wait |
/// | is behind (`behind`) | goes on as before; only an operator lowers it | wait |
///
/// Decision 0035 says why.
public struct TimeKeeping: Sendable {
    /// The largest error of a clock that is kept right.
    public static let slack = Duration.minutes(5)
    /// How long a wall clock has to agree with the elapsed time before anything is deleted because of it.
    public static let provenAfter = Duration.minutes(10)
    /// How long a jump ahead has to last before it is believed.
    public static let believedAfter = Duration.minutes(10)
    /// The store's mark may be older than the newest stamp by this much.
    public static let markRoughness = Duration.seconds(5)
    /// Within this window the time is corrected forwards by `slack` at most. A larger step is a jump.
    private static let correctionWindow = Duration.hours(1)
    /// The largest step ahead of an unproven clock that is followed: a time zone, a slow battery.
    private static let newClockStepMax = Duration.days(1)
    /// How long a machine may have been off for its clock to be followed at once at a start.
    public static let absenceMax = Duration.days(31)
    /// 2025-01-01. An earlier time comes from a machine without a battery, and every later time is better.
    private static let plausibleFrom = Timestamp(seconds: 1_735_689_600)
    /// A difference below this is not corrected.
    private static let noise = Duration.milliseconds(1)

    /// The time as a function of the elapsed time.
    struct Line: Sendable, Equatable {
        var from: Instant
        var base: Timestamp
        /// How far the line has to fall back. It falls back by running at half speed.
        var excess = Duration.zero

        func time(at instant: Instant) -> Timestamp {
            let passed = max(0, instant.nanoseconds(since: from)) / 1_000
            return base + .microseconds(passed - min(excess.microseconds, passed / 2))
        }
    }

    public enum State: Sendable, Equatable {
        case unproven(since: Instant)
        case proven
        /// `offset`: the wall clock minus the elapsed time, in microseconds.
        case ahead(since: Instant, offset: Int64)
        case behind
    }

    /// A finding of `check`, for the log.
    public enum Notice: Sendable, Equatable {
        /// The wall clock is `by` ahead of the time, and not believed yet.
        case jumpedAhead(by: Duration)
        case fellBehind(by: Duration)
        /// A jump ahead has lasted: the time is the wall clock's now.
        case believed(jump: Duration)
        /// The time follows a clock that was new and was set again.
        case followed(step: Duration)
        case agreesAgain
    }

    private(set) var line: Line
    public private(set) var state: State
    /// True while the line follows a wall clock that is not proven yet, or no wall clock.
    private var isUnproven = true
    /// The line before the time began to follow the present wall clock. The time does not fall below it.
    private var floor: Line?
    /// Since when the wall clock and the time have agreed.
    private var agreedSince: Instant
    private var corrected = Duration.zero
    private var correctedAt: Instant

    /// Begins at a start. `mark`: the highest time the store is known to have seen; nil for a new store.
    ///
    /// A machine may have been off for a month, so a wall clock ahead of the mark is followed, and has to prove itself.
    /// A wall clock that is further ahead is more likely wrong, and is treated like any other jump. A wall clock behind
    /// the mark is wrong, or was wrong before: the time goes on from the mark.
    public init(wall: Timestamp, elapsed: Instant, mark: Timestamp?) {
        self.line = Line(from: elapsed, base: wall)
        self.state = .unproven(since: elapsed)
        self.agreedSince = elapsed
        self.correctedAt = elapsed
        guard let mark else { return }
        let floor = Line(from: elapsed, base: mark + Self.markRoughness)
        self.floor = floor
        if wall < mark - Self.slack {
            line = floor
            state = .behind
        } else if wall < mark {
            // A small step back, or another node's clock: the time does not go back, it waits.
            line = Line(from: elapsed, base: floor.base, excess: floor.base - wall)
            prove()
        } else if wall <= mark + Self.slack {
            prove()
        } else if wall > mark + Self.absenceMax {
            line = floor
            state = .ahead(since: elapsed, offset: Self.offset(wall, elapsed))
        }
    }

    /// Whether something may be deleted because of its age.
    public var isProven: Bool { state == .proven }

    /// Whether the wall clock and the time have gone together for `duration`.
    public func hasAgreed(for duration: Duration, at elapsed: Instant) -> Bool {
        isProven && Duration.nanoseconds(elapsed.nanoseconds(since: agreedSince)) >= duration
    }

    /// Whether the wall clock is considered wrong. A clock that is only unproven is not wrong.
    public var isWrong: Bool {
        switch state {
        case .ahead, .behind: true
        case .proven, .unproven: false
        }
    }

    /// Whether the time may become the store's mark: not while it comes from an unproven clock.
    var mayMark: Bool { !isUnproven || line == floor }

    public func now(at elapsed: Instant) -> Timestamp { line.time(at: elapsed) }

    /// The earliest time that it can be. Records that are left out because of their age are compared with it.
    public func earliest(at elapsed: Instant) -> Timestamp {
        if state == .behind { return .zero }
        guard isUnproven else { return now(at: elapsed) }
        return floor.map { min($0.time(at: elapsed), now(at: elapsed)) } ?? .zero
    }

    /// Compares the wall clock with the time. Called every second.
    public mutating func check(wall: Timestamp, elapsed: Instant) -> Notice? {
        let difference = wall - now(at: elapsed)
        return isUnproven ? checkUnproven(wall, difference, elapsed) : checkProven(wall, difference, elapsed)
    }

    private mutating func checkProven(_ wall: Timestamp, _ difference: Duration, _ elapsed: Instant) -> Notice? {
        if difference < .zero - Self.slack { return state == .behind ? nil : fallBehind(difference) }
        guard difference <= allowance(at: elapsed) else { return wait(wall, difference, elapsed) }
        correct(difference, wall, elapsed)
        guard state != .proven else { return nil }
        agreedSince = elapsed
        prove()
        return .agreesAgain
    }

    private mutating func checkUnproven(_ wall: Timestamp, _ difference: Duration, _ elapsed: Instant) -> Notice? {
        let lowest = floor?.time(at: elapsed)
        if let floor, let lowest, wall < lowest - Self.slack {
            line = floor
            return state == .behind ? nil : fallBehind(wall - lowest)
        }
        switch state {
        case .unproven(let since) where difference <= Self.slack && difference >= .zero - Self.slack:
            correct(difference, wall, elapsed)
            if Duration.nanoseconds(elapsed.nanoseconds(since: since)) >= Self.provenAfter { prove() }
            return nil
        case .unproven where difference > Self.newClockStepMax && now(at: elapsed) >= Self.plausibleFrom:
            return wait(wall, difference, elapsed)
        case .ahead, .behind:
            // If the server started with a wrong clock, it takes the first reading that can be right.
            if difference > (line == floor ? Self.absenceMax : Self.newClockStepMax) {
                return wait(wall, difference, elapsed)
            }
        case .unproven, .proven: break
        }
        return follow(wall, difference, elapsed, notBelow: lowest)
    }

    /// Waits until a jump ahead has lasted `believedAfter`.
    private mutating func wait(_ wall: Timestamp, _ difference: Duration, _ elapsed: Instant) -> Notice? {
        let offset = Self.offset(wall, elapsed)
        guard case .ahead(let since, let former) = state, Self.isNear(offset, former) else {
            state = .ahead(since: elapsed, offset: offset)
            return .jumpedAhead(by: difference)
        }
        guard Duration.nanoseconds(elapsed.nanoseconds(since: since)) >= Self.believedAfter else { return nil }
        // The old line was certain, so it becomes the floor: the time does not fall below it if the jump is taken back.
        if !isUnproven { floor = line }
        _ = follow(wall, difference, elapsed)
        return .believed(jump: difference)
    }

    // MARK: Changes of state

    private mutating func prove() {
        state = .proven
        isUnproven = false
        floor = nil
    }

    private mutating func follow(
        _ wall: Timestamp, _ difference: Duration, _ elapsed: Instant, notBelow lowest: Timestamp? = nil
    ) -> Notice {
        line = Line(from: elapsed, base: max(wall, lowest ?? wall))
        state = .unproven(since: elapsed)
        isUnproven = true
        agreedSince = elapsed
        return .followed(step: difference)
    }

    private mutating func fallBehind(_ difference: Duration) -> Notice {
        state = .behind
        return .fellBehind(by: .zero - difference)
    }

    // MARK: Small corrections

    /// How far the time may be put forward now: `slack` within an hour, so that many small steps make no jump.
    private func allowance(at elapsed: Instant) -> Duration { max(.zero, Self.slack - spent(at: elapsed)) }

    private func spent(at elapsed: Instant) -> Duration {
        let passed = Duration.nanoseconds(max(0, elapsed.nanoseconds(since: correctedAt)))
        return max(.zero, corrected - passed * Self.slack.microseconds / Self.correctionWindow.microseconds)
    }

    private mutating func correct(_ difference: Duration, _ wall: Timestamp, _ elapsed: Instant) {
        guard difference > Self.noise || difference < .zero - Self.noise else { return }
        if difference > .zero {
            corrected = spent(at: elapsed) + difference
            correctedAt = elapsed
            line = Line(from: elapsed, base: wall)
        } else {
            line = Line(from: elapsed, base: now(at: elapsed), excess: .zero - difference)
        }
    }

    private static func isNear(_ offset: Int64, _ former: Int64) -> Bool {
        Duration.microseconds(offset &- former) <= slack && Duration.microseconds(former &- offset) <= slack
    }

    private static func offset(_ wall: Timestamp, _ elapsed: Instant) -> Int64 {
        wall.microseconds &- elapsed.nanoseconds / 1_000
    }
}
