import Base
import Synchronization

/// Values that are fetched from elsewhere, kept for as long as their source says, and for a day if the source is down.
///
/// For each key, one fetch runs at a time, however many callers wait for it, and at most one every `retryInterval`,
/// whether the last value was not enough or the source fails. The number of entries is bounded: the entry that was
/// unused for longest is dropped. Any thread.
final class FetchCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    struct Fetched: Sendable {
        let value: Value
        /// The lifetime that the source gives, bounded by `lifetimeRange`. If it gives none, `lifetimeDefault` applies.
        let lifetime: Duration?
    }

    private struct Entry {
        var value: Value?
        var fetchedAt = Timestamp.zero
        var freshUntil = Timestamp.zero
        var lastAttempt: Timestamp?
        var lastError: (any Error)?
        /// The callers that wait for the fetch under way. Nil if no fetch is under way.
        var waiters: [Promise<Value>]?
        var lastUse: UInt64 = 0

        /// The value, if it may be used. A value from the future may not be used: the clock went back since, and the
        /// value's age is unknown.
        func kept(at now: Timestamp) -> Value? {
            guard let value, fetchedAt <= now, now < fetchedAt + FetchCache.staleMax else { return nil }
            return value
        }
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var useCount: UInt64 = 0
    }

    private enum Plan {
        case use(Value)
        case fail(any Error)
        case wait(Promise<Value>, isFetching: Bool)
    }

    private let state = Mutex(State())
    private let entriesMax: Int

    static var retryInterval: Duration { .seconds(10) }
    static var lifetimeRange: ClosedRange<Duration> { .minutes(1)...Duration.days(1) }
    static var lifetimeDefault: Duration { .hours(1) }
    /// An older value is never used, even if no newer one can be fetched.
    static var staleMax: Duration { .days(1) }

    init(entriesMax: Int) { self.entriesMax = entriesMax }

    var count: Int { state.withLock { $0.entries.count } }

    /// The value for `key`: kept, fetched, or the old one if fetching fails.
    ///
    /// `isEnough` says whether a kept value will do. A value that will not do may be returned all the same, if it was
    /// fetched less than `retryInterval` ago. Throws the error of `fetch`, which is called at most once.
    func value(
        for key: Key, now: Timestamp, isEnough: @escaping @Sendable (Value) -> Bool = { _ in true },
        _ fetch: @escaping @Sendable () async throws -> Fetched
    ) async throws -> Value {
        switch state.withLock({ plan(&$0, key, now, isEnough) }) {
        case .use(let value): return value
        case .fail(let error): throw error
        case .wait(let promise, let isFetching):
            if isFetching {
                // The task belongs to no waiter: the cancellation of the first caller must not fail the others.
                Task {
                    do { finish(key, now, .success(try await fetch())) } catch { finish(key, now, .failure(error)) }
                }
            }
            return try await promise.cancellableValue()
        }
    }

    private func plan(_ state: inout State, _ key: Key, _ now: Timestamp, _ isEnough: (Value) -> Bool) -> Plan {
        state.useCount += 1
        // The usual case, handled in place because each sign-in comes here twice.
        if let index = state.entries.index(forKey: key), now < state.entries.values[index].freshUntil,
            let kept = state.entries.values[index].kept(at: now), isEnough(kept)
        {
            state.entries.values[index].lastUse = state.useCount
            return .use(kept)
        }
        if state.entries[key] == nil && state.entries.count >= entriesMax { Self.evict(&state) }
        var entry = state.entries[key] ?? Entry()
        defer { state.entries[key] = entry }
        entry.lastUse = state.useCount
        let kept = entry.kept(at: now)
        if entry.waiters == nil, let lastAttempt = entry.lastAttempt, lastAttempt <= now,
            now < lastAttempt + Self.retryInterval
        {
            if let kept { return .use(kept) }
            return .fail(entry.lastError ?? FederationError.unavailable(.unreachable))
        }
        let promise = Promise<Value>()
        let isFetching = entry.waiters == nil
        entry.waiters = (entry.waiters ?? []) + [promise]
        if isFetching { entry.lastAttempt = now }
        return .wait(promise, isFetching: isFetching)
    }

    private func finish(_ key: Key, _ now: Timestamp, _ result: Result<Fetched, any Error>) {
        let (waiters, outcome) = state.withLock { state -> ([Promise<Value>], Result<Value, any Error>) in
            guard var entry = state.entries[key] else {
                preconditionFailure("an entry was dropped while it is fetched")
            }
            defer { state.entries[key] = entry }
            let waiters = entry.waiters ?? []
            entry.waiters = nil
            switch result {
            case .success(let fetched):
                let lifetime = fetched.lifetime ?? Self.lifetimeDefault
                entry.value = fetched.value
                entry.fetchedAt = now
                entry.freshUntil =
                    now + min(max(lifetime, Self.lifetimeRange.lowerBound), Self.lifetimeRange.upperBound)
                entry.lastError = nil
                return (waiters, .success(fetched.value))
            case .failure(let error):
                entry.lastError = error
                // Our own queue was full: the source was not asked.
                if !(error is FederationError) || error as? FederationError == .overloaded { entry.lastAttempt = nil }
                if let kept = entry.kept(at: now) { return (waiters, .success(kept)) }
                return (waiters, .failure(error))
            }
        }
        for waiter in waiters { waiter.complete(with: outcome) }
    }

    /// Drops the entry that was unused for longest. Entries that are being fetched stay.
    private static func evict(_ state: inout State) {
        let idle = state.entries.filter { $0.value.waiters == nil }
        guard let oldest = idle.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return }
        state.entries[oldest.key] = nil
    }
}
