import Base
import Crypto
import Messages
import Reactor
import Rules
import Store
import TestSupport
import Testing

@testable import Identity

/// Refusing, delaying and remembering guesses together, over a real store.
@Suite struct GuessThrottleTests {
    private static let masterKey = MasterKey.generate(random: .system)

    /// The test must stop the throttle: an armed timer must not be freed off its loop while the loop runs.
    private static func throttle(_ fixture: Fixture, _ resources: Resources? = nil) -> GuessThrottle {
        GuessThrottle(
            masterKey: masterKey, resources: resources ?? fixture.resources,
            loop: fixture.loops.loops[0])
    }

    private static func guess(_ account: UInt64, _ address: UInt64, kind: Guess.Kind = .password) -> Guess {
        Guess(kind: kind, account: account, source: address, address: address, tenant: 1, caller: 2)
    }

    private static func fail(_ throttle: GuessThrottle, _ guess: Guess, times: Int) async throws {
        for _ in 0..<times { throttle.failed(try await throttle.admit(guess)) }
    }

    /// Puts what is no record under the key. It is announced as any row is.
    private static func damage(_ key: GuessRowKey, in fixture: Fixture) async throws {
        let rows = Tables.guesses
        let asBytes = Table<GuessRowKey, [UInt8]>(
            id: rows.id, name: rows.name, owner: rows.owner, purge: rows.purge, news: rows.news)
        // The length of a field that is not there.
        try await fixture.store.write { try $0.put(asBytes, key, [0x0A, 0x7F]) }
    }

    @Test func `A damaged row does not stop a start, and the other rows count`() async throws {
        try await withFixture { fixture in
            let first = Self.throttle(fixture)
            for account in [7, 8] as [UInt64] {
                try await Self.fail(first, Self.guess(account, 50 + account), times: 6)
                await first.save()
            }
            let keys = try fixture.rows(Tables.guesses).keys.sorted { $0.lexicographicallyPrecedes($1) }
            let bytes = try #require(keys.first)
            let key = try #require(bytes.withUnsafeBytes { GuessRowKey(stored: $0) })
            try await Self.damage(key, in: fixture)
            let second = Self.throttle(fixture)
            try second.start()
            #expect(second.counters.forgotten.value == 1)
            await #expect(refusal { _ = try await second.admit(Self.guess(8, 58)) } == "TOO_MANY_ATTEMPTS_TRY_LATER")
            try await Self.fail(second, Self.guess(7, 57), times: 6)
            for throttle in [first, second] { await throttle.stop() }
        }
    }

    /// Otherwise an attacker would have each node's guesses for an hour.
    @Test func `A damaged row of another server does not keep its later rows from counting`() async throws {
        try await withFixture { fixture in
            let (first, second) = (Self.throttle(fixture), Self.throttle(fixture))
            for throttle in [first, second] { try throttle.start() }
            try await Self.damage(GuessRowKey(time: fixture.now, serverID: 1, row: 1), in: fixture)
            try await Self.fail(first, Self.guess(7, 50), times: 6)
            await first.save()
            await #expect(refusal { _ = try await second.admit(Self.guess(7, 50)) } == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(second.counters.forgotten.value == 1)
            for throttle in [first, second] { await throttle.stop() }
        }
    }

    @Test func anotherServerReadsWhatThisOneCounted() async throws {
        try await withFixture { fixture in
            let first = Self.throttle(fixture)
            try await Self.fail(first, Self.guess(7, 50), times: 6)
            await first.save()
            let second = Self.throttle(fixture)
            try second.start()
            await #expect(refusal { _ = try await second.admit(Self.guess(7, 50)) } == "TOO_MANY_ATTEMPTS_TRY_LATER")
            try await Self.fail(second, Self.guess(8, 51), times: 6)
            await second.save()
            let third = Self.throttle(fixture)
            try third.start()
            for guess in [Self.guess(7, 50), Self.guess(8, 51)] {
                await #expect(refusal { _ = try await third.admit(guess) } == "TOO_MANY_ATTEMPTS_TRY_LATER")
            }
            #expect(try fixture.rows(Tables.guesses).count == 2)
            for throttle in [first, second, third] { await throttle.stop() }
        }
    }

    @Test func `A tenant with many guesses in a second does not take the places of another's`() async throws {
        try await withFixture { fixture in
            var limits = Limits()
            limits.guessesKeptPerSecond = 8
            let resources = Resources(
                store: fixture.store, time: ServerClock(fixture.clock.machine), random: .system, limits: limits,
                log: .silent)
            let first = Self.throttle(fixture, resources)
            for number in UInt64(0)..<20 { try await Self.fail(first, Self.guess(100 + number, 50), times: 1) }
            let ada = Guess(kind: .password, account: 7, source: 60, address: 60, tenant: 9, caller: 2)
            try await Self.fail(first, ada, times: 6)
            for number in UInt64(0)..<8 { try await Self.fail(first, Self.guess(200 + number, 51), times: 1) }
            await first.save()
            #expect(first.counters.forgotten.value == 21)
            let second = Self.throttle(fixture, resources)
            try second.start()
            await #expect(refusal { _ = try await second.admit(ada) } == "TOO_MANY_ATTEMPTS_TRY_LATER")
            for throttle in [first, second] { await throttle.stop() }
        }
    }

    @Test func whatAnotherServerCountsIsTakenOverAsItComes() async throws {
        try await withFixture { fixture in
            let (first, second) = (Self.throttle(fixture), Self.throttle(fixture))
            for throttle in [first, second] { try throttle.start() }
            let guess = Self.guess(7, 50)
            try await Self.fail(first, guess, times: 3)
            await first.save()
            try await Self.fail(second, guess, times: 2)
            await second.save()
            // A restart in the middle, with another id: it reads five guesses, and hears of the sixth.
            let third = Self.throttle(fixture)
            try third.start()
            try await Self.fail(first, guess, times: 1)
            await first.save()
            for throttle in [first, second, third] {
                await #expect(refusal { _ = try await throttle.admit(guess) } == "TOO_MANY_ATTEMPTS_TRY_LATER")
            }
            // A right guess, once its second is over, makes all three forget.
            fixture.clock.advance(by: .seconds(2))
            first.succeeded(try await first.admit(guess))
            await first.save()
            for throttle in [second, third] { try await Self.fail(throttle, guess, times: 5) }
            for throttle in [first, second, third] { await throttle.stop() }
        }
    }

    /// The same address, on two servers whose clocks differ: what was counted is neither forgotten nor counted twice.
    @Test(arguments: [Duration.zero, .hours(1), .days(365)])
    func guessesOfAServerInTheFutureCountAsOfNow(ahead: Duration) async throws {
        try await withFixture { fixture in
            let behind = ManualClock(startingAt: fixture.clock.clock.now() - ahead)
            let second = Self.throttle(
                fixture,
                Resources(
                    store: fixture.store, time: ServerClock(behind.machine), random: .system, limits: Limits(),
                    log: .silent))
            let first = Self.throttle(fixture)
            for throttle in [first, second] { try throttle.start() }
            // An address has 30 guesses in hand, for whatever accounts.
            for number in UInt64(0)..<30 {
                let throttle = number % 2 == 0 ? first : second
                try await Self.fail(throttle, Self.guess(100 + number, 50), times: 1)
                await throttle.save()
            }
            // The rows of the server that is behind may be too old for the other one.
            await #expect(refusal { _ = try await second.admit(Self.guess(7, 50)) } == "TOO_MANY_ATTEMPTS_TRY_LATER")
            if ahead == .zero {
                await #expect(refusal { _ = try await first.admit(Self.guess(7, 50)) } == "TOO_MANY_ATTEMPTS_TRY_LATER")
            }
            for throttle in [first, second] { await throttle.stop() }
        }
    }

    @Test func whatEndedTheWaitingIsReadToo() async throws {
        try await withFixture { fixture in
            let first = Self.throttle(fixture)
            let email = try #require(Email("ada@example.com", form: .toFind, limits: Limits()))
            let ada = first.keys.account(email, tenantID: "acme")
            try await Self.fail(first, Self.guess(ada, 50), times: 6)
            try await Self.fail(first, Self.guess(7, 60), times: 3)
            await first.save()
            first.forgive(email, tenantID: "acme")
            first.succeeded(try await first.admit(Self.guess(7, 60)))
            await first.save()
            let second = Self.throttle(fixture)
            try second.start()
            try await Self.fail(second, Self.guess(ada, 50), times: 6)
            try await Self.fail(second, Self.guess(7, 60), times: 6)
            for throttle in [first, second] { await throttle.stop() }
        }
    }

    @Test func aRowCountsForAnHourAndOneOfTheFutureAsOfNow() async throws {
        try await withFixture { fixture in
            let first = Self.throttle(fixture)
            try await Self.fail(first, Self.guess(7, 50), times: 6)
            await first.save()
            // A clock that was set back forgets nothing: a guess from the future counts as noted now.
            for early in [Duration.zero, .hours(1), .days(365)] {
                let time = fixture.clock.clock.now() - early
                let behind = ManualClock(startingAt: time)
                let other = Resources(
                    store: fixture.store, time: ServerClock(behind.machine), random: .system, limits: Limits(),
                    log: .silent)
                let second = Self.throttle(fixture, other)
                try second.start()
                await #expect(throws: Failure.self) { _ = try await second.admit(Self.guess(7, 50)) }
                await second.stop()
            }
            fixture.clock.advance(by: .hours(1) + .microseconds(1))
            let second = Self.throttle(fixture)
            try second.start()
            try await Self.fail(second, Self.guess(7, 50), times: 6)
            await second.stop()
            await first.stop()
            fixture.clock.advance(by: .hours(3))
            let now = fixture.now
            #expect(try await !fixture.store.write { try $0.forgetGuesses(now: now, limit: 500) })
            #expect(try fixture.rows(Tables.guesses).isEmpty)
        }
    }

    @Test func aSecondKeepsSoManyKindsOfGuessesAndNoMore() async throws {
        var limits = Limits()
        limits.guessesKeptPerSecond = 10
        try await withFixture(limits: limits) { fixture in
            let throttle = Self.throttle(fixture)
            for number in UInt64(0)..<30 {
                try await Self.fail(throttle, Self.guess(100 + number, 500 + number), times: 2)
            }
            await throttle.save()
            #expect(throttle.counters.forgotten.value == 40)
            let row = try #require(try fixture.rows(Tables.guesses).values.first)
            let kept = try row.withUnsafeBytes { try StoredGuesses(decoding: $0) }.guesses
            #expect(kept.count == 10 && kept.allSatisfy { $0.count == 2 })
            await throttle.stop()
        }
    }

    /// A store that accepts no more writes does not make any sign-in fail.
    @Test func aFullDiskLosesCountsAndNothingElse() async throws {
        try await withTemporaryStore(tables: Tables.all, { $0.mapByteCount = 1 << 20 }) { store in
            var isFull = false
            for number in 0..<2_000 where !isFull {
                do {
                    // To the last page: counts of guesses may use half of the reserve.
                    try await store.write(for: .removal) { transaction in
                        try transaction.put(
                            Tables.emailConfigs, TenantPrefix(Text("t\(number)")),
                            StoredEmailConfig(sealedSmtpPassword: [UInt8](repeating: 1, count: 2_000)))
                    }
                } catch { isFull = true }
            }
            #expect(isFull)
            let loops = EventLoopGroup(count: 1, name: "test")
            loops.start()
            let throttle = GuessThrottle(
                masterKey: Self.masterKey,
                resources: Resources(
                    store: store, time: ServerClock(ManualClock().machine), random: .system, limits: Limits(),
                    log: .silent),
                loop: loops.loops[0])
            for number in 0..<200 {
                try await Self.fail(throttle, Self.guess(100 + UInt64(number), 500 + UInt64(number)), times: 1)
                await throttle.save()
            }
            #expect(throttle.counters.forgotten.value > 0)
            await #expect(refusal { try await Self.fail(throttle, Self.guess(9, 9), times: 7) } != nil)
            await throttle.stop()
            await Self.end(loops)
        }
    }

    private static func end(_ loops: EventLoopGroup) async {
        let done = Promise<Void>()
        let thread = OSThread(name: "end") {
            loops.stop()
            loops.join()
            done.succeed(())
        }
        try? await done.value()
        thread.join()
    }
}
