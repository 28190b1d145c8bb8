public import Base
public import Crypto
public import Reactor
public import Rules

/// The one place that decides whether a guess may be tried now: `GuessBudgets` refuses guesses, `WaitingRoom` makes
/// guesses wait, `GuessJournal` keeps the counts over a restart and brings those of other nodes. Any thread.
///
/// ```
/// let charge = try await throttle.admit(guess)
/// if isRight { throttle.succeeded(charge) } else { throttle.failed(charge) }
/// ```
/// Every charge ends in `succeeded`, `failed` or `notTried`.
public final class GuessThrottle: Sendable {
    /// A guess that was admitted.
    public struct Charge: Sendable {
        fileprivate let charge: GuessBudgets.Charge
    }

    public let keys: GuessKeys
    public let devices: DeviceTokens
    public let counters = GuessCounters()
    private let budgets: GuessBudgets
    private let room: WaitingRoom
    private let journal: GuessJournal
    private let clock: Clock
    private let steadyClock: Clock
    private let waitMax: Duration

    public init(masterKey: MasterKey, resources: Resources, loop: EventLoop) {
        let budgets = GuessBudgets(limits: resources.limits)
        self.keys = GuessKeys(key: masterKey.hmac("guesses"))
        self.devices = DeviceTokens(key: masterKey.hmac("device token"))
        self.budgets = budgets
        self.room = WaitingRoom(limits: resources.limits, counters: counters, loop: loop)
        self.journal = GuessJournal(resources: resources, counters: counters, loop: loop)
        self.clock = resources.clock
        self.steadyClock = resources.steadyClock
        self.waitMax = resources.limits.strangerWaitMax
    }

    /// Charges a guess; returns when it may be tried.
    ///
    /// Throws TOO_MANY_ATTEMPTS_TRY_LATER; for guesses that have to wait SERVER_OVERLOADED (too many wait already) and
    /// `CancellationError`. A refused guess is not charged.
    public func admit(_ guess: Guess) async throws -> Charge {
        switch budgets.admit(guess, now: steadyClock.now()) {
        case .refused(let wait, let byAddress):
            (byAddress ? counters.refusedByAddress : counters.refusedByAccount).add()
            throw Failure.tooManyAttempts(retryAfter: wait)
        case .admitted(let charge):
            guard charge.overflow > 0 else { return Charge(charge: charge) }
            do {
                let microseconds = Double(waitMax.microseconds) * charge.overflow
                try await room.wait(.microseconds(Int64(microseconds)), tenant: guess.tenant)
            } catch {
                budgets.notTried(charge)
                throw error
            }
            return Charge(charge: charge)
        }
    }

    /// The password was right, so it was not a guess.
    public func succeeded(_ admitted: Charge) {
        if budgets.succeeded(admitted.charge) { journal.note(.right(admitted.charge.guess)) }
    }

    /// The guess was wrong, or a question was answered.
    public func failed(_ admitted: Charge) { journal.note(.wrong(admitted.charge.guess)) }

    /// The guess was never tried, because of a full queue or a deadline; or the request turned out to ask no question.
    public func notTried(_ admitted: Charge) { budgets.notTried(admitted.charge) }

    /// Charges a guess whose charge was given back earlier.
    public func charge(_ guess: Guess) {
        budgets.add(1, guess, at: steadyClock.now())
        journal.note(.wrong(guess))
    }

    /// Forgets the wrong passwords of the guess's source, because its user proved their identity by other means.
    func forget(_ guess: Guess) {
        if budgets.forget(guess) { journal.note(.right(guess)) }
    }

    /// Forgets the counts of an account, over all sources, because it has a new password.
    public func forgive(_ email: Email, tenantID: Text) {
        let account = keys.account(email, tenantID: tenantID)
        budgets.forgive(account: account)
        journal.note(.forgiven(account: account, tenant: keys.tenant(tenantID)))
    }

    /// Takes over the counts from before a restart, and from then on the counts of the other nodes of a cluster. Called
    /// before the server answers requests.
    public func start() throws {
        try journal.follow { [budgets, clock, steadyClock] entries in
            let (now, steadyNow) = (clock.now(), steadyClock.now())
            for entry in entries {
                switch entry.note {
                case .wrong(let guess):
                    // The clock may have been set back since the entry was read, so the age could be negative.
                    budgets.add(entry.count, guess, at: steadyNow - max(.zero, now - entry.time))
                case .right(let guess): budgets.forget(guess)
                case .forgiven(let account, _): budgets.forgive(account: account)
                }
            }
        }
    }

    /// Writes the counts since the last write; this also happens every second by itself.
    public func save() async { await journal.save() }

    /// Writes the counts for the last time. Call it before a throttle is dropped whose loop goes on.
    public func stop() async { await journal.stop() }
}

/// The counts of guesses, for /metrics.
public final class GuessCounters: Sendable {
    public let refusedByAccount = Counter()
    public let refusedByAddress = Counter()
    public let delayed = Counter()
    public let waiting = Gauge()
    /// Guesses that were turned away because too many waited already.
    public let waitingRefused = Counter()
    /// Notes that were not kept over a restart: too many in one second, or a write that failed. A damaged row adds one.
    public let forgotten = Counter()
}
