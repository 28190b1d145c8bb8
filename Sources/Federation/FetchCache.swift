import Base
import Synchronization

/// Values that are fetched from elsewhere, kept for as long as their source says, and for a day if the source is down.
///
/// For each key, one fetch runs at a time, however many callers wait for it, and at most one every `retryInterval`,
/// whether the last value was not enough or the source fails. Any thread.
///
/// The tenant of the caller that begins a fetch pays for it. If the fetch is refused on account of that tenant, this is
/// no answer to the callers of others: one of them begins the next fetch.
///
/// Tenants share the entries, and their number is bounded. If there is no room for a further entry, the tenant that put
/// the most entries loses the one that was unused for longest: a tenant with few entries keeps them, unless another
/// one has hardly more.
final class FetchCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    struct Fetched: Sendable {
        let value: Value
        /// The lifetime that the source gives, bounded by `lifetimeRange`. If it gives none, `lifetimeDefault` applies.
        let lifetime: Duration?
    }

    private struct Entry {
        /// The tenant that put the entry. Other tenants may use it.
        let tenant: Text
        var value: Value?
        var fetchedAt = Timestamp.zero
        var freshUntil = Timestamp.zero
        var lastAttempt: Timestamp?
        var lastError: (any Error)?
        /// The callers that wait for the fetch under way. Nil if no fetch is under way.
        var waiters: WaitingCallers<Value>?
        var lastUse: UInt64 = 0

        init(tenant: Text) { self.tenant = tenant }

        /// The value, if it may be used. A value from the future may not be used: the clock went back since, and the
        /// value's age is unknown. A value from less than `callTimeMax` ahead counts as new: the caller took the time
        /// when its call began, and may have waited for a provider since.
        func kept(at now: Timestamp) -> Value? {
            guard let value, fetchedAt < now + FetchCache.callTimeMax, now < fetchedAt + FetchCache.staleMax else {
                return nil
            }
            return value
        }

        /// The next step for a caller of `tenant` that no fresh value serves.
        mutating func plan(_ tenant: Text, _ now: Timestamp, _ use: UInt64, _ isEnough: (Value) -> Bool) -> Plan {
            lastUse = use
            let kept = kept(at: now)
            let isIdle = waiters == nil
            if isIdle, let lastAttempt, lastAttempt <= now, now < lastAttempt + FetchCache.retryInterval {
                if let kept { return .use(kept) }
                return .fail(lastError ?? FederationError.unavailable(.unreachable))
            }
            if isIdle {
                waiters = WaitingCallers()
                lastAttempt = now
            }
            // In place: a copy for each caller would take ever longer, under the lock of all tenants.
            if let promise = waiters?.add(tenant) { return .wait(promise, beginsFetch: isIdle) }
            if let kept, isEnough(kept) { return .use(kept) }
            return .fail(FederationError.overloaded)
        }

        /// Notes what the fetch brought. Returns the outcome for the callers that waited.
        mutating func finish(_ now: Timestamp, _ result: Result<Fetched, any Error>) -> Result<Value, any Error> {
            switch result {
            case .success(let fetched):
                let lifetime = fetched.lifetime ?? FetchCache.lifetimeDefault
                let range = FetchCache.lifetimeRange
                value = fetched.value
                fetchedAt = now
                freshUntil = now + min(max(lifetime, range.lowerBound), range.upperBound)
                lastError = nil
                return .success(fetched.value)
            case .failure(let error):
                lastError = error
                if !Self.wasSourceAsked(error) { lastAttempt = nil }
                guard let kept = self.kept(at: now) else { return .failure(error) }
                return .success(kept)
            }
        }

        /// Whether the source was asked before the fetch failed. It was not if our own queue was full, the tenant's
        /// processor time was spent, or the URL may not be asked.
        private static func wasSourceAsked(_ error: any Error) -> Bool {
            switch error as? FederationError {
            case nil, .overloaded?, .misconfigured?: false
            default: true
            }
        }

        /// Whether the entry holds nothing: no value, and no attempt to fetch one.
        var isEmpty: Bool { value == nil && lastAttempt == nil }
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var useCount: UInt64 = 0
    }

    /// A fetch that was refused on account of its tenant. `outcome` is for the callers of this tenant, and for those
    /// that wait for no other fetch.
    private struct Refused: Error {
        let tenant: Text
        let outcome: Result<Value, any Error>
    }

    private enum Plan {
        case use(Value)
        case fail(any Error)
        /// `beginsFetch`: whether this caller has to begin the fetch that it waits for.
        case wait(Promise<Value>, beginsFetch: Bool)
    }

    private let state = Mutex(State())
    private let entriesMax: Int

    /// How many fetches one caller waits for, if the ones before were refused on account of other tenants.
    static var fetchesMax: Int { 4 }
    /// The number of entries that each tenant may have in any case: also if all other tenants have fewer, and all its
    /// own entries are being fetched.
    static var assuredCount: Int { 8 }
    static var retryInterval: Duration { .seconds(10) }
    static var lifetimeRange: ClosedRange<Duration> { .minutes(1)...Duration.days(1) }
    static var lifetimeDefault: Duration { .hours(1) }
    /// The time for which a call may go on with the time of its beginning.
    static var callTimeMax: Duration { .seconds(30) }
    /// An older value is never used, even if no newer one can be fetched.
    static var staleMax: Duration { .days(1) }

    init(entriesMax: Int) { self.entriesMax = entriesMax }

    var count: Int { state.withLock { $0.entries.count } }

    /// The value for `key`: kept, fetched, or the old one if fetching fails.
    ///
    /// `isEnough` says whether a kept value will do. A value that will not do may be returned all the same, if it was
    /// fetched less than `retryInterval` ago. Throws the error of `fetch`, which is called at most once. OVERLOADED if
    /// too many callers of `tenant` wait for the same fetch, if its own fetches take all the room that it may have, or
    /// if `fetchesMax` fetches of other tenants were refused and there is no old value.
    func value(
        for key: Key, tenant: Text, now: Timestamp, isEnough: @escaping @Sendable (Value) -> Bool = { _ in true },
        _ fetch: @escaping @Sendable () async throws -> Fetched
    ) async throws -> Value {
        var outcome = Result<Value, any Error>.failure(FederationError.overloaded)
        for _ in 0..<Self.fetchesMax {
            switch state.withLock({ plan(&$0, key, tenant, now, isEnough) }) {
            case .use(let value): return value
            case .fail(let error): throw error
            case .wait(let promise, let beginsFetch):
                if beginsFetch { begin(key, tenant, now, fetch) }
                do {
                    return try await promise.cancellableValue()
                } catch let refused as Refused {
                    outcome = refused.outcome
                    if refused.tenant == tenant { return try outcome.get() }
                }
            }
        }
        return try outcome.get()
    }

    /// Fetches in a task that belongs to no waiter: the cancellation of the first caller must not fail the others.
    private func begin(
        _ key: Key, _ tenant: Text, _ now: Timestamp, _ fetch: @escaping @Sendable () async throws -> Fetched
    ) {
        Task {
            do {
                finish(key, tenant, now, .success(try await fetch()))
            } catch {
                finish(key, tenant, now, .failure(error))
            }
        }
    }

    private func plan(
        _ state: inout State, _ key: Key, _ tenant: Text, _ now: Timestamp, _ isEnough: (Value) -> Bool
    ) -> Plan {
        state.useCount += 1
        let use = state.useCount
        // The usual case, handled in place because each sign-in comes here twice.
        if let index = state.entries.index(forKey: key), now < state.entries.values[index].freshUntil,
            let kept = state.entries.values[index].kept(at: now), isEnough(kept)
        {
            state.entries.values[index].lastUse = use
            return .use(kept)
        }
        if state.entries.index(forKey: key) == nil && state.entries.count >= entriesMax {
            guard Self.makeRoom(&state, for: tenant) else { return .fail(FederationError.overloaded) }
        }
        return state.entries[key, default: Entry(tenant: tenant)].plan(tenant, now, use, isEnough)
    }

    private func finish(_ key: Key, _ tenant: Text, _ now: Timestamp, _ result: Result<Fetched, any Error>) {
        let (waiters, outcome) = state.withLock { state -> ([Promise<Value>], Result<Value, any Error>) in
            guard let index = state.entries.index(forKey: key) else {
                preconditionFailure("an entry was dropped while it is fetched")
            }
            let waiters = state.entries.values[index].waiters.take()?.promises ?? []
            let outcome = state.entries.values[index].finish(now, result)
            if state.entries.values[index].isEmpty { state.entries.remove(at: index) }
            return (waiters, outcome)
        }
        guard case .failure(FederationError.overloaded) = result else {
            for waiter in waiters { waiter.complete(with: outcome) }
            return
        }
        for waiter in waiters { waiter.fail(Refused(tenant: tenant, outcome: outcome)) }
    }

    /// Drops an entry of the tenant that has the most, the new entry of `tenant` included: the one that was unused for
    /// longest. Entries that are being fetched stay. Returns false if only tenants with fewer entries than `tenant`
    /// could give one up, and `tenant` has more than are assured.
    private static func makeRoom(_ state: inout State, for tenant: Text) -> Bool {
        var counts: [Text: Int] = [tenant: 1]
        for entry in state.entries.values { counts[entry.tenant, default: 0] += 1 }
        var found: (key: Key, count: Int, lastUse: UInt64)?
        let ownCount = counts[tenant, default: 1]
        var countMin = ownCount <= assuredCount ? 1 : ownCount
        for (key, entry) in state.entries where entry.waiters == nil {
            let count = counts[entry.tenant, default: 0]
            guard count >= countMin else { continue }
            if let found, count == found.count, entry.lastUse > found.lastUse { continue }
            countMin = count
            found = (key, count, entry.lastUse)
        }
        guard let key = found?.key else { return false }
        state.entries[key] = nil
        return true
    }
}
