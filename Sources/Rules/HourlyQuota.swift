public import Base

/// A limit of uses per hour, for each key. Pure: the time is passed in.
///
/// An hour begins with a key's first use. A refused use is not charged. Memory: at most `keysMax` keys. When there are
/// more, those whose hour is over are removed, and then all, which is generous but bounded.
public struct HourlyQuota: Sendable {
    private struct Hour {
        var startedAt: Timestamp
        var count: Int
    }

    private var hours: [UInt64: Hour] = [:]
    private let keysMax: Int

    public init(keysMax: Int = 50_000) { self.keysMax = keysMax }

    /// How long to wait before `key` may be used once more; zero when now.
    public func wait(_ key: UInt64, max: Int, now: Timestamp) -> Duration {
        guard let hour = hours[key], now >= hour.startedAt, now - hour.startedAt < .hours(1), hour.count >= max else {
            return .zero
        }
        return hour.startedAt + .hours(1) - now
    }

    /// How much of its hour `key` has used.
    public func count(_ key: UInt64, now: Timestamp) -> Int {
        guard let hour = hours[key], now >= hour.startedAt, now - hour.startedAt < .hours(1) else { return 0 }
        return hour.count
    }

    public mutating func charge(_ key: UInt64, now: Timestamp) {
        if hours.count >= keysMax { makeRoom(now: now) }
        var hour = hours[key] ?? Hour(startedAt: now, count: 0)
        if now < hour.startedAt || now - hour.startedAt >= .hours(1) { hour = Hour(startedAt: now, count: 0) }
        hour.count += 1
        hours[key] = hour
    }

    private mutating func makeRoom(now: Timestamp) {
        hours = hours.filter { now >= $0.value.startedAt && now - $0.value.startedAt < .hours(1) }
        if hours.count >= keysMax { hours = [:] }
    }
}
