import Base
import Testing

@testable import Federation

@Suite(.timeLimit(.minutes(1))) struct FetchCacheTests {
    private typealias Cache = FetchCache<Int, Int>
    private let start = Timestamp(seconds: 1_800_000_000)

    /// Asks for `key`, whose value is the key. Returns whether that fetched the value.
    private func fetches(_ key: Int, _ tenant: Text, _ cache: Cache) async throws -> Bool {
        let fetches = Counter()
        let value = try await cache.value(for: key, tenant: tenant, now: start) {
            fetches.add()
            return Cache.Fetched(value: key, lifetime: nil)
        }
        #expect(value == key)
        return fetches.value > 0
    }

    /// A call has the time of its beginning. Another call may fetch the value while the first one waits for a provider.
    @Test(
        arguments: [(0, 1), (29_999, 1), (30_000, 2), (60_000, 2)] as [(Int, Int)])
    func `A value that was fetched since the call began is used`(milliseconds: Int, expected: Int) async throws {
        let cache = Cache(entriesMax: 8)
        func value(_ value: Int, at now: Timestamp) async throws -> Int {
            try await cache.value(for: 1, tenant: "a", now: now) { Cache.Fetched(value: value, lifetime: nil) }
        }
        #expect(try await value(1, at: start + .milliseconds(milliseconds)) == 1)
        #expect(try await value(2, at: start) == expected)
    }

    @Test func aTenantWithManyKeysLosesItsOwn() async throws {
        let cache = Cache(entriesMax: 8)
        #expect(try await fetches(0, "a", cache))
        for key in 1...20 { #expect(try await fetches(key, "b", cache)) }
        #expect(cache.count == 8)
        #expect(try await fetches(0, "a", cache) == false)
        for key in 14...20 { #expect(try await fetches(key, "b", cache) == false) }
        #expect(try await fetches(13, "b", cache))
        #expect(try await fetches(0, "a", cache) == false)
    }

    @Test func ofTenantsWithTheSameNumberTheOneWhoseEntryWasUnusedForLongestLosesIt() async throws {
        let cache = Cache(entriesMax: 4)
        for key in 0..<4 { #expect(try await fetches(key, Text("t\(key)"), cache)) }
        #expect(try await fetches(0, "t0", cache) == false)
        #expect(try await fetches(9, "new", cache))
        for key in [0, 2, 3, 9] { #expect(try await fetches(key, "t", cache) == false) }
        #expect(try await fetches(1, "t1", cache))
        #expect(cache.count == 4)
    }

    /// The usual case of a server with many tenants: the others have an entry each, and users of one tenant come by
    /// several providers at the same time.
    @Test func aTenantFetchesAFewAtOnceAlsoIfAllOthersHaveFewer() async throws {
        let cache = Cache(entriesMax: 16)
        for key in 0..<16 { #expect(try await fetches(key, Text("t\(key)"), cache)) }
        let tasks = (100...100 + Cache.assuredCount).map { key in
            let (begun, gate) = (Promise<Bool>(), Promise<Cache.Fetched>())
            let task = Task {
                do {
                    return try await cache.value(for: key, tenant: "b", now: start) {
                        begun.succeed(true)
                        return try await gate.value()
                    }
                } catch {
                    begun.succeed(false)
                    throw error
                }
            }
            return (task, begun, gate)
        }
        var begunCount = 0
        for (_, begun, _) in tasks where try await begun.value() { begunCount += 1 }
        #expect(begunCount == Cache.assuredCount)
        for (task, _, gate) in tasks {
            gate.succeed(Cache.Fetched(value: 1, lifetime: nil))
            _ = await task.result
        }
        // The entries that the others lost were those that were unused for longest.
        for key in 8..<16 { #expect(try await fetches(key, Text("t\(key)"), cache) == false) }
    }

    @Test func anEntryOfAnotherTenantMayBeUsed() async throws {
        let cache = Cache(entriesMax: 8)
        #expect(try await fetches(0, "a", cache))
        #expect(try await fetches(0, "b", cache) == false)
    }

    @Test(
        arguments: [
            (.overloaded, 0), (.misconfigured(.badEndpoint), 0), (.unavailable(.slow), 1),
        ] as [(FederationError, Int)])
    func aFetchThatDidNotBeginLeavesNoEntry(_ error: FederationError, _ count: Int) async throws {
        let cache = Cache(entriesMax: 8)
        await #expect(throws: error) {
            try await cache.value(for: 1, tenant: "a", now: start) { () async throws -> Cache.Fetched in throw error }
        }
        #expect(cache.count == count)
    }

    /// The value, or nil if the cache is overloaded.
    private static func value(
        _ tenant: Text, _ cache: Cache, _ now: Timestamp, _ gate: Promise<Cache.Fetched>
    ) async -> Int? {
        do {
            return try await cache.value(for: 1, tenant: tenant, now: now) { try await gate.value() }
        } catch {
            #expect(error as? FederationError == .overloaded)
            return nil
        }
    }

    /// Of 300 callers, 256 wait for a fetch that does not end. The others get the old value, or are refused.
    @Test(arguments: [false, true]) func oneTenantWaits256TimesForAFetchAtMost(_ hasOldValue: Bool) async throws {
        let cache = Cache(entriesMax: 8)
        if hasOldValue { #expect(try await fetches(1, "a", cache)) }
        let (now, gate) = (start + .hours(2), Promise<Cache.Fetched>())
        let atOnce: Int? = hasOldValue ? 1 : nil
        await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<300 { group.addTask { await Self.value("a", cache, now, gate) } }
            for _ in 0..<44 {
                let early = await group.next()
                #expect(early == Optional(atOnce))
            }
            gate.succeed(Cache.Fetched(value: 2, lifetime: nil))
            for await late in group { #expect(late == 2) }
        }
    }

    /// The first caller's tenant may do nothing more at the moment. That is no answer to the callers of another one.
    @Test(arguments: [false, true])
    func aFetchThatIsRefusedToOneTenantIsBegunByAnother(_ hasOldValue: Bool) async throws {
        let cache = Cache(entriesMax: 8)
        if hasOldValue { #expect(try await fetches(1, "a", cache)) }
        let (now, gate, begun) = (start + .hours(2), Promise<Cache.Fetched>(), Promise<Void>())
        let first = Task {
            try await cache.value(for: 1, tenant: "a", now: now) {
                begun.succeed(())
                return try await gate.value()
            }
        }
        try await begun.value()
        let others = Counter()
        await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<300 {
                group.addTask {
                    try? await cache.value(for: 1, tenant: "b", now: now) {
                        others.add()
                        return Cache.Fetched(value: 2, lifetime: nil)
                    }
                }
            }
            // When 44 have their answer, the other 256 wait for the fetch of the first tenant.
            for _ in 0..<44 { _ = await group.next() }
            gate.fail(FederationError.overloaded)
            for await late in group { #expect(late == 2) }
        }
        #expect(others.value == 1)
        let result = await first.result
        if hasOldValue {
            #expect(try result.get() == 1)
        } else {
            #expect(throws: FederationError.overloaded) { try result.get() }
        }
    }

    /// Each caller is of another tenant, and waits for several fetches that are refused.
    @Test func `The old value serves whoever waited for fetches of others in vain`() async throws {
        let cache = Cache(entriesMax: 8)
        #expect(try await fetches(1, "first", cache))
        let now = start + .hours(2)
        await withTaskGroup(of: Int?.self) { group in
            for number in 0..<64 {
                group.addTask {
                    try? await cache.value(for: 1, tenant: Text("t\(number)"), now: now) {
                        () async throws -> Cache.Fetched in
                        throw FederationError.overloaded
                    }
                }
            }
            for await value in group { #expect(value == 1) }
        }
    }

    @Test func theCallersOfEachTenantAreCounted() {
        var callers = WaitingCallers<Int>()
        var taken: [Text: Int] = [:]
        for _ in 0..<300 {
            for tenant: Text in ["a", "b"] where callers.add(tenant) != nil { taken[tenant, default: 0] += 1 }
        }
        #expect(taken == ["a": 256, "b": 256])
        #expect(callers.promises.count == 512)
    }
}
