import Base
import Identity
import Synchronization

/// The streams of Sessions.WatchAuthState that each session, and each user with all sessions, has open on this server.
/// Without a bound, one user would take all the streams that the application's credential may have. Any thread.
final class SessionWatches: Sendable {
    private let limits: AdministrationLimits
    /// The sessions that are watched, of each user, with the number of their streams.
    private let counts = Mutex<[UserKey: [[UInt8]: Int]]>([:])

    init(limits: AdministrationLimits) { self.limits = limits }

    /// Counts a stream. RESOURCE_EXHAUSTED TOO_MANY_STREAMS.
    func begin(_ user: UserKey, _ sessionID: [UInt8]) throws(Failure) {
        let isCounted = counts.withLock { counts in
            let ofUser = counts[user, default: [:]]
            let ofSession = ofUser[sessionID, default: 0]
            let sum = ofUser.values.reduce(0, +)
            guard ofSession < limits.watchesPerSessionMax, sum < limits.watchesPerUserMax else { return false }
            counts[user, default: [:]][sessionID] = ofSession + 1
            return true
        }
        guard isCounted else { throw .tooManyWatches }
    }

    func end(_ user: UserKey, _ sessionID: [UInt8]) {
        counts.withLock { counts in
            guard var ofUser = counts[user], let ofSession = ofUser[sessionID] else { return }
            ofUser[sessionID] = ofSession > 1 ? ofSession - 1 : nil
            counts[user] = ofUser.isEmpty ? nil : ofUser
        }
    }
}

extension Failure {
    fileprivate static let tooManyWatches = Failure(
        .tooManyStreams,
        "The session, or its user with all sessions, is watched by as many streams as it may be; end some of them.",
        retryAfter: .seconds(5))
}
