public import Base

/// Slows password guessing down without ever locking an account. Pure: time comes in, no clock, no lock.
///
/// - Per (account, address): the first five wrong passwords are free, then each costs a wait that doubles from one
///   second to fifteen minutes. An address the user signed in from before has a bucket of its own, so somebody who
///   guesses from elsewhere cannot make the owner wait.
/// - Per account, over all addresses it never signed in from: 100 wrong passwords an hour, which a botnet of fresh
///   addresses cannot get around.
/// - Buckets are keyed by a hash of the email whether or not an account has it, so waiting tells nothing.
///
/// An attempt is charged when it is admitted and refunded when it succeeds or never ran, so a hundred guesses sent at
/// once are not a hundred free ones. A refused attempt costs nothing. Memory: at most `bucketsMax` buckets; the ones
/// that were quiet longest go first.
public struct PasswordThrottle: Sendable {
    /// Who is trying: hashes, so that no address or email is kept.
    public struct Subject: Hashable, Sendable {
        public let account: UInt64
        /// 0 when the end user's address is not known.
        public let address: UInt64

        public init(account: UInt64, address: UInt64) {
            self.account = account
            self.address = address
        }
    }

    public enum Verdict: Equatable, Sendable {
        case admitted
        case refused(retryAfter: Duration)
    }

    private struct Bucket {
        var failures = 0
        var lastAt: Timestamp
        /// What `lastAt` was before the newest attempt, should that turn out never to have run.
        var previousAt: Timestamp
    }

    private struct Account {
        /// Addresses that signed in before, the latest last.
        var knownAddresses: [UInt64] = []
        var strangerFailures = 0
        var hourStartedAt: Timestamp
        var lastAt: Timestamp
    }

    static let freeFailures = 5
    static let longestWait = Duration.seconds(15 * 60)
    static let strangerFailuresPerHour = 100
    static let forgottenAfter = Duration.seconds(3_600)
    static let knownAddressesMax = 16

    private var buckets: [Subject: Bucket] = [:]
    private var accounts: [UInt64: Account] = [:]
    private let bucketsMax: Int

    public init(bucketsMax: Int = 50_000) { self.bucketsMax = bucketsMax }

    /// Charges an attempt, or says how long to wait.
    public mutating func admit(_ subject: Subject, now: Timestamp) -> Verdict {
        makeRoom(now: now)
        var bucket = buckets[subject] ?? Bucket(lastAt: now, previousAt: now)
        // A clock that went back must not make anybody wait until it is where it was.
        if now < bucket.lastAt || now - bucket.lastAt > Self.forgottenAfter {
            bucket = Bucket(lastAt: now, previousAt: now)
        }
        let readyAt = bucket.lastAt + Self.wait(afterFailures: bucket.failures)
        if readyAt > now { return .refused(retryAfter: readyAt - now) }
        var account = accounts[subject.account] ?? Account(hourStartedAt: now, lastAt: now)
        if now < account.hourStartedAt || now - account.hourStartedAt >= .seconds(3_600) {
            account.hourStartedAt = now
            account.strangerFailures = 0
        }
        if !account.knownAddresses.contains(subject.address) {
            if account.strangerFailures >= Self.strangerFailuresPerHour {
                return .refused(retryAfter: account.hourStartedAt + .seconds(3_600) - now)
            }
            account.strangerFailures += 1
        }
        bucket.failures += 1
        bucket.previousAt = bucket.lastAt
        bucket.lastAt = now
        account.lastAt = now
        buckets[subject] = bucket
        accounts[subject.account] = account
        return .admitted
    }

    /// The password was right: the bucket is forgotten and the address is known from now on.
    public mutating func succeeded(_ subject: Subject, now: Timestamp) {
        buckets[subject] = nil
        refundStranger(subject)
        guard subject.address != 0, var account = accounts[subject.account] else { return }
        account.knownAddresses.removeAll { $0 == subject.address }
        account.knownAddresses.append(subject.address)
        if account.knownAddresses.count > Self.knownAddressesMax { account.knownAddresses.removeFirst() }
        accounts[subject.account] = account
    }

    /// The password was never checked (a full queue, a deadline): gives the charge back, and the wait that was over.
    public mutating func notTried(_ subject: Subject) {
        if var bucket = buckets[subject] {
            bucket.failures -= 1
            bucket.lastAt = bucket.previousAt
            buckets[subject] = bucket.failures > 0 ? bucket : nil
        }
        refundStranger(subject)
    }

    private mutating func refundStranger(_ subject: Subject) {
        guard var account = accounts[subject.account], !account.knownAddresses.contains(subject.address) else { return }
        account.strangerFailures = max(0, account.strangerFailures - 1)
        accounts[subject.account] = account
    }

    static func wait(afterFailures failures: Int) -> Duration {
        guard failures > freeFailures else { return .zero }
        let doublings = min(failures - freeFailures - 1, 10)
        return min(.seconds(1 << doublings), longestWait)
    }

    private mutating func makeRoom(now: Timestamp) {
        if buckets.count >= bucketsMax {
            let cut = quietest(of: buckets.values.map(\.lastAt))
            buckets = buckets.filter { $0.value.lastAt > cut }
        }
        if accounts.count >= bucketsMax {
            let cut = quietest(of: accounts.values.map(\.lastAt))
            accounts = accounts.filter { $0.value.lastAt > cut }
        }
    }

    /// The time below which the quietest quarter lies.
    private func quietest(of times: [Timestamp]) -> Timestamp {
        times.sorted()[times.count / 4]
    }
}
