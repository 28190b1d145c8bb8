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
