import Base
import Rules
import Synchronization

/// The budgets of all guesses of a project: decides on guesses, and counts them. Any thread.
///
/// A guess is charged when it is admitted, and the charge is given back when it was not a guess. The tables are divided
/// into shards with a lock of their own, and no two locks are held at once: when the second budget refuses a guess, the
/// first one's charge is given back.
///
/// | budget | when it is spent |
/// |---|---|
/// | email and source; email over all sources that are not known (`PasswordThrottle`) | refuses |
/// | address within a tenant; address over all tenants | refuses sources that are not known to the account |
/// | tenant; caller | makes sources that are not known wait |
///
/// One tenant fills at most a third of an address's budget over all tenants, so that no tenant can shut an address out
/// of other tenants by reporting guesses that nobody made.
final class GuessBudgets: Sendable {
    /// The charges of a guess, so that they can be given back.
    struct Charge: Sendable {
        let guess: Guess
        fileprivate(set) var isSharedByTenants = false
        /// How far the tenant or the caller is beyond its budget: 0 is not at all, 1 the most.
        fileprivate(set) var overflow = 0.0
    }

    enum Verdict: Sendable {
        case admitted(Charge)
        /// `byAddress`: the address's budget is spent, not the account's.
        case refused(retryAfter: Duration, byAddress: Bool)
    }

    private struct State {
        var passwords: PasswordThrottle
        var probes: PasswordThrottle
        var buckets: LeakyBuckets
    }

    private final class Shard: Sendable {
        let state: Mutex<State>

        init(entriesMax: Int) {
            self.state = Mutex(
                State(
                    passwords: PasswordThrottle(bucketsMax: entriesMax),
                    probes: PasswordThrottle(bucketsMax: entriesMax), buckets: LeakyBuckets(bucketsMax: entriesMax)))
        }
    }

    private static let shardCount = 16

    private let shards: [Shard]
    private let addressRate: LeakyBuckets.Rate
    private let tenantRate: LeakyBuckets.Rate
    private let callerRate: LeakyBuckets.Rate

    init(limits: Limits) {
        let entriesMax = max(16, limits.throttleEntriesMax / Self.shardCount)
        self.shards = (0..<Self.shardCount).map { _ in Shard(entriesMax: entriesMax) }
        self.addressRate = .init(capacity: limits.guessesPerAddress, perHour: limits.guessesPerAddressAndHour)
        self.tenantRate = .init(capacity: limits.guessesPerTenantAndHour, perHour: limits.guessesPerTenantAndHour)
        self.callerRate = .init(capacity: limits.guessesPerCallerAndHour, perHour: limits.guessesPerCallerAndHour)
    }

    func admit(_ guess: Guess, now: Timestamp) -> Verdict {
        if case .refused(let wait) = admitAccount(guess, now: now) {
            return .refused(retryAfter: wait, byAddress: false)
        }
        var charge = Charge(guess: guess)
        guard !guess.isKnown else { return .admitted(charge) }
        if guess.address != 0, let wait = spendAddress(&charge, now: now) {
            withThrottle(of: guess) { $0.notTried(guess.subject) }
            return .refused(retryAfter: wait, byAddress: true)
        }
        charge.overflow = max(
            spend(tenantKey(guess), tenantRate, of: guess.tenant, now: now),
            spend(callerKey(guess), callerRate, of: guess.tenant, now: now))
        return .admitted(charge)
    }

    /// Ends a guess whose password was right; returns whether earlier wrong guesses are forgotten by that.
    func succeeded(_ charge: Charge) -> Bool {
        var hadFailures = false
        withThrottle(of: charge.guess) { hadFailures = $0.succeeded(charge.guess.subject) }
        giveBack(charge)
        return hadFailures
    }

    /// Ends a guess whose password was never checked.
    func notTried(_ charge: Charge) {
        withThrottle(of: charge.guess) { $0.notTried(charge.guess.subject) }
        giveBack(charge)
    }

    func forgive(account: UInt64) {
        shard(account).state.withLock {
            $0.passwords.forgive(account: account)
            $0.probes.forgive(account: account)
        }
    }

    /// Counts guesses that were wrong before a restart or at another server, or turn out to be guesses later.
    func add(_ count: Int, _ guess: Guess, at time: Timestamp) {
        withThrottle(of: guess) { $0.add(count, by: guess.subject, at: time) }
        guard !guess.isKnown else { return }
        func charge(_ key: UInt64, _ rate: LeakyBuckets.Rate) {
            shard(key).state.withLock { $0.buckets.add(key, rate, count, of: guess.tenant, at: time) }
        }
        if guess.address != 0 {
            let own = addressKey(guess)
            charge(own, addressRate)
            let level = shard(own).state.withLock { $0.buckets.level(own, addressRate, now: time) }
            if level <= addressRate.capacity / 3 { charge(sharedAddressKey(guess), addressRate) }
        }
        charge(tenantKey(guess), tenantRate)
        charge(callerKey(guess), callerRate)
    }

    /// Forgets the earlier counts of the guess's source; returns whether there were any.
    @discardableResult
    func forget(_ guess: Guess) -> Bool {
        var hadFailures = false
        withThrottle(of: guess) { hadFailures = $0.forget(guess.subject) }
        return hadFailures
    }
}

extension GuessBudgets {
    private func admitAccount(_ guess: Guess, now: Timestamp) -> PasswordThrottle.Verdict {
        var verdict = PasswordThrottle.Verdict.admitted
        withThrottle(of: guess) { verdict = $0.admit(guess.subject, now: now) }
        return verdict
    }

    /// A question that may be asked often has no account, and so no account's throttle.
    private func withThrottle(of guess: Guess, _ body: (inout PasswordThrottle) -> Void) {
        guard guess.account != 0 else { return }
        shard(guess.account).state.withLock { state in
            switch guess.kind {
            case .password: body(&state.passwords)
            case .probe: body(&state.probes)
            }
        }
    }

    /// Charges the budgets of the address. Returns how long to wait, or nil when all budgets that apply were charged.
    private func spendAddress(_ charge: inout Charge, now: Timestamp) -> Duration? {
        let own = addressKey(charge.guess)
        let shared = sharedAddressKey(charge.guess)
        let tenant = charge.guess.tenant
        let (wait, level) = shard(own).state.withLock { state in
            (
                state.buckets.spend(own, addressRate, of: tenant, now: now),
                state.buckets.level(own, addressRate, now: now)
            )
        }
        if let wait { return wait }
        charge.isSharedByTenants = level <= addressRate.capacity / 3
        let isShared = charge.isSharedByTenants
        let sharedWait = shard(shared).state.withLock { state in
            isShared
                ? state.buckets.spend(shared, addressRate, of: tenant, now: now)
                : state.buckets.wait(shared, addressRate, now: now)
        }
        guard let sharedWait else { return nil }
        giveBack(own, addressRate)
        return sharedWait
    }

    /// Spends one unit of a budget that refuses nobody; returns how far it is overdrawn.
    private func spend(_ key: UInt64, _ rate: LeakyBuckets.Rate, of tenant: UInt64, now: Timestamp) -> Double {
        shard(key).state.withLock { state in
            state.buckets.charge(key, rate, 1, of: tenant, now: now)
            return state.buckets.overflow(key, rate, now: now)
        }
    }

    private func giveBack(_ charge: Charge) {
        let guess = charge.guess
        guard !guess.isKnown else { return }
        if guess.address != 0 {
            giveBack(addressKey(guess), addressRate)
            if charge.isSharedByTenants { giveBack(sharedAddressKey(guess), addressRate) }
        }
        giveBack(tenantKey(guess), tenantRate)
        giveBack(callerKey(guess), callerRate)
    }

    private func giveBack(_ key: UInt64, _ rate: LeakyBuckets.Rate) {
        shard(key).state.withLock { $0.buckets.giveBack(key, rate) }
    }

    private func shard(_ key: UInt64) -> Shard { shards[Int(key % UInt64(Self.shardCount))] }

    // Keys are hashes under a secret key already; mixing them keeps the kinds of buckets apart.

    private func sharedAddressKey(_ guess: Guess) -> UInt64 { Self.mix(guess.address, UInt64(guess.kind.rawValue)) }
    private func addressKey(_ guess: Guess) -> UInt64 { Self.mix(sharedAddressKey(guess), guess.tenant) }
    private func tenantKey(_ guess: Guess) -> UInt64 { Self.mix(guess.tenant, UInt64(guess.kind.rawValue)) }
    private func callerKey(_ guess: Guess) -> UInt64 { Self.mix(guess.caller, UInt64(guess.kind.rawValue)) }

    /// The final mix of SplitMix64 over both values.
    private static func mix(_ first: UInt64, _ second: UInt64) -> UInt64 {
        var value = first &+ second &* 0x9E37_79B9_7F4A_7C15
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
