public import Base

/// Slows password guessing down without ever locking an account. Pure: the time is passed in, no clock, no lock.
///
/// - Per (account, source): the first five wrong passwords are free, then each costs a wait that doubles from one
///   second to fifteen minutes. A source is a device or an address. A source that signed in to the account before is
///   known, and only this bucket counts for it, so somebody who guesses from elsewhere cannot make the owner wait.
/// - Per account, over all sources that are not known: 100 wrong passwords an hour, which a botnet of fresh addresses
///   cannot get around.
/// - Buckets are keyed by a hash of the email whether or not an account has it, so waiting tells nothing.
///
/// An attempt is charged when it is admitted and refunded when it succeeds or never ran, so a hundred guesses sent at
/// once are not a hundred free ones. A refused attempt costs nothing. Memory: at most `bucketsMax` buckets; `Eviction`
/// says which are removed first.
public struct PasswordThrottle: Sendable {
    /// The source and the account of an attempt, as hashes, so that no address or email is kept.
    public struct Subject: Hashable, Sendable {
        public let account: UInt64
        /// 0 when neither the device nor the address is known.
        public let source: UInt64
        /// Whether the source signed in to the account before.
        public let isKnown: Bool
        /// The tenant of the account.
        public let tenant: UInt64

        public init(account: UInt64, source: UInt64, isKnown: Bool = false, tenant: UInt64 = 0) {
            self.account = account
            self.tenant = tenant
            self.source = source
            // Source 0 is shared by everybody whose device and address are not known.
            self.isKnown = isKnown && source != 0
        }
    }

    public enum Verdict: Equatable, Sendable {
        case admitted
        case refused(retryAfter: Duration)
    }

    private struct BucketKey: Hashable {
        let account: UInt64
        let source: UInt64

        init(_ subject: Subject) {
            self.account = subject.account
            self.source = subject.source
        }
    }

    private struct Bucket {
        let tenant: UInt64
        var failures = 0
        var lastAt: Timestamp
        /// The value of `lastAt` before the newest attempt, for the case that the attempt never ran.
        var previousAt: Timestamp
        /// The account's count when the bucket began; another value means that the account was forgiven meanwhile.
        var forgivenCount: UInt32
    }

    private struct Account {
        let tenant: UInt64
        var strangerFailures = 0
        var hourStartedAt: Timestamp
        var lastAt: Timestamp
        var forgivenCount: UInt32 = 0
    }

    static let freeFailures = 5
    static let longestWait = Duration.seconds(15 * 60)
    static let strangerFailuresPerHour = 100
    /// Attempts older than this do not count.
    public static let forgottenAfter = Duration.seconds(3_600)

    private var buckets: [BucketKey: Bucket] = [:]
    private var accounts: [UInt64: Account] = [:]
    private let bucketsMax: Int

    public init(bucketsMax: Int = 50_000) { self.bucketsMax = bucketsMax }

    /// Charges an attempt, or says how long to wait.
    public mutating func admit(_ subject: Subject, now: Timestamp) -> Verdict {
        makeRoom(now: now)
        let (bucket, account) = state(of: subject, now: now)
        let readyAt = bucket.lastAt + Self.wait(afterFailures: bucket.failures)
        if readyAt > now { return .refused(retryAfter: readyAt - now) }
        if !subject.isKnown, account.strangerFailures >= Self.strangerFailuresPerHour {
            return .refused(retryAfter: account.hourStartedAt + .seconds(3_600) - now)
        }
        charge(subject, 1, bucket, account, now: now)
        return .admitted
    }

    /// Charges wrong passwords that were counted elsewhere: before a restart, or by another server. They count as no
    /// older than the last charge: going back in time would forget that charge.
    public mutating func add(_ failures: Int, by subject: Subject, at time: Timestamp) {
        let time = max(
            time, buckets[BucketKey(subject)]?.lastAt ?? time, accounts[subject.account]?.lastAt ?? time)
        makeRoom(now: time)
        let (bucket, account) = state(of: subject, now: time)
        charge(subject, failures, bucket, account, now: time)
    }

    /// Forgets the bucket, because the password was right. Returns whether it held wrong passwords besides this
    /// attempt.
    @discardableResult
    public mutating func succeeded(_ subject: Subject) -> Bool {
        let bucket = buckets.removeValue(forKey: BucketKey(subject))
        refundStranger(subject)
        return (bucket?.failures ?? 0) > 1
    }

    /// Forgets the wrong passwords of a source whose user showed elsewhere who they are: by other means than the
    /// password, before a restart, or at another server. Returns whether there were any.
    @discardableResult
    public mutating func forget(_ subject: Subject) -> Bool { buckets.removeValue(forKey: BucketKey(subject)) != nil }

    /// Gives the charge back, and restores the time of the attempt before, because the password was never checked (a
    /// full queue, a deadline).
    public mutating func notTried(_ subject: Subject) {
        if var bucket = buckets[BucketKey(subject)] {
            bucket.failures -= 1
            bucket.lastAt = bucket.previousAt
            buckets[BucketKey(subject)] = bucket.failures > 0 ? bucket : nil
        }
        refundStranger(subject)
    }

    /// Forgets the counts of an account, over all sources, because it has a new password.
    public mutating func forgive(account: UInt64) {
        guard var state = accounts[account] else { return }
        state.strangerFailures = 0
        state.forgivenCount &+= 1
        accounts[account] = state
    }

    private func state(of subject: Subject, now: Timestamp) -> (Bucket, Account) {
        var account = accounts[subject.account] ?? Account(tenant: subject.tenant, hourStartedAt: now, lastAt: now)
        // A clock that went back must not make anybody wait until it is where it was.
        if now < account.hourStartedAt || now - account.hourStartedAt >= .seconds(3_600) {
            account.hourStartedAt = now
            account.strangerFailures = 0
        }
        let fresh = Bucket(
            tenant: subject.tenant, lastAt: now, previousAt: now, forgivenCount: account.forgivenCount)
        guard let bucket = buckets[BucketKey(subject)], bucket.forgivenCount == account.forgivenCount,
            now >= bucket.lastAt, now - bucket.lastAt <= Self.forgottenAfter
        else { return (fresh, account) }
        return (bucket, account)
    }

    private mutating func charge(
        _ subject: Subject, _ failures: Int, _ bucket: Bucket, _ account: Account, now: Timestamp
    ) {
        var bucket = bucket
        var account = account
        if !subject.isKnown {
            account.strangerFailures = min(account.strangerFailures + failures, Self.strangerFailuresPerHour)
        }
        bucket.failures += failures
        bucket.previousAt = bucket.lastAt
        bucket.lastAt = now
        account.lastAt = now
        buckets[BucketKey(subject)] = bucket
        accounts[subject.account] = account
    }

    private mutating func refundStranger(_ subject: Subject) {
        guard !subject.isKnown, var account = accounts[subject.account] else { return }
        account.strangerFailures = max(0, account.strangerFailures - 1)
        accounts[subject.account] = account
    }

    static func wait(afterFailures failures: Int) -> Duration {
        guard failures > freeFailures else { return .zero }
        let doublings = min(failures - freeFailures - 1, 10)
        return min(.seconds(1 << doublings), longestWait)
    }

    private mutating func makeRoom(now: Timestamp) {
        func isStrict(_ failures: Int, since start: Timestamp) -> Bool {
            failures > Self.freeFailures && (.zero...Self.forgottenAfter).contains(now - start)
        }
        if buckets.count >= bucketsMax {
            buckets.evict {
                .init(tenant: $0.tenant, isStrict: isStrict($0.failures, since: $0.lastAt), lastAt: $0.lastAt)
            }
        }
        if accounts.count >= bucketsMax {
            accounts.evict {
                .init(
                    tenant: $0.tenant, isStrict: isStrict($0.strangerFailures, since: $0.hourStartedAt),
                    lastAt: $0.lastAt)
            }
        }
    }
}

extension Dictionary {
    /// Makes room in a table that is full.
    mutating func evict(_ entry: (Value) -> Eviction.Entry) {
        let keys = Array(keys)
        for victim in Eviction.victims(values.map(entry)) { self[keys[victim]] = nil }
    }
}
