public import Base

/// A limit of uses per hour, for each key. Pure: the time is passed in.
///
/// An hour begins with a key's first use. A refused use is not charged. There are at most `keysMax` keys. A further key
/// takes the place of a key whose hour is over, or ends soon.
public struct HourlyQuota: Sendable {
    private struct Hour: Fading {
        var startedAt: Timestamp
        var count: Int

        var meaningfulUntil: Timestamp { startedAt + .hours(1) }

        /// An hour that begins in the future is not the present one, because the clock went back since.
        func isCurrent(_ now: Timestamp) -> Bool { startedAt <= now && now - startedAt < .hours(1) }
    }

    private var hours: ForgetfulTable<UInt64, Hour>

    public init(keysMax: Int = 50_000) { hours = ForgetfulTable(countMax: keysMax) }

    /// How long to wait before `key` may be used once more; zero when now.
    public func wait(_ key: UInt64, max: Int, now: Timestamp) -> Duration {
        guard let hour = hours[key], hour.isCurrent(now), hour.count >= max else { return .zero }
        return hour.meaningfulUntil - now
    }

    /// How much of its hour `key` has used.
    public func count(_ key: UInt64, now: Timestamp) -> Int {
        guard let hour = hours[key], hour.isCurrent(now) else { return 0 }
        return hour.count
    }

    public mutating func charge(_ key: UInt64, now: Timestamp) {
        var hour = hours[key] ?? Hour(startedAt: now, count: 0)
        if !hour.isCurrent(now) { hour = Hour(startedAt: now, count: 0) }
        hour.count += 1
        hours[key] = hour
    }
}
