import Base
import Messages
import Synchronization
import Tokens

/// The contents of the feed, shared between the task that follows it and the threads that verify. Any thread.
final class FollowedRevocations: Sendable {
    private struct State: Sendable {
        var revocations: RevocationState
        /// A snapshot that is still coming in; it replaces `revocations` when it is whole.
        var incoming: RevocationState?
        var cursor = Text.empty
        var isComplete = false
        /// The failure with which the newest stream ended, if it says why. Nil: a message came since, or the server is
        /// away.
        var feedRefusal: Failure?
        /// The server's time. Nil before the first snapshot is whole.
        var clock: FeedClock?
        /// The server's time is far lower than it was: the next snapshot begins a new clock.
        var awaitsSnapshot = false

        /// Adds a revocation to the snapshot that is coming in, or else to what is known.
        mutating func apply(_ revocation: Revocation, now: Timestamp) {
            if incoming != nil {
                incoming?.apply(revocation, now: now)
            } else {
                revocations.apply(revocation, now: now)
            }
        }
    }

    private let state: Mutex<State>
    private let retention: Duration

    init(retention: Duration, at local: Instant) {
        self.retention = retention
        self.state = Mutex(State(revocations: RevocationState(retention: retention, now: Self.time(local))))
    }

    /// Entries are forgotten by the clock of this process: the server's clock may have been wrong, and may be
    /// corrected.
    private static func time(_ local: Instant) -> Timestamp { Timestamp(microseconds: local.nanoseconds / 1_000) }

    /// The place where a new stream continues. Empty before the first snapshot is whole.
    var cursor: Text { state.withLock { $0.cursor } }

    /// Whether enough is known to accept tokens.
    var isComplete: Bool { state.withLock { $0.isComplete } }

    /// Takes in a message. Returns whether a new stream has to begin, with a new snapshot: the server's time was
    /// corrected so far downwards that the present snapshot may lack revocations. Until then the state counts as stale.
    @discardableResult
    func apply(_ message: TokensWatchRevocationsResponse, at local: Instant) -> Bool {
        let now = Timestamp(microseconds: message.timeMicros)
        return state.withLock { state in
            state.feedRefusal = nil
            if message.snapshotReason != .unspecified {
                state.incoming = RevocationState(
                    retention: retention, onlyTenantID: message.scope?.onlyTenantID, now: Self.time(local))
            }
            for revocation in message.revocations { state.apply(revocation, now: Self.time(local)) }
            if let whole = state.incoming, !message.continues {
                state.revocations = whole
                state.incoming = nil
                if state.awaitsSnapshot { (state.clock, state.awaitsSnapshot) = (nil, false) }
            }
            guard state.incoming == nil else { return false }
            state.cursor = message.cursor
            // While more messages follow, a revocation that has not come yet may be old.
            guard !message.continues else { return false }
            state.isComplete = true
            var clock = state.clock ?? FeedClock(now, at: local)
            let isFarLower = clock.hear(now, at: local)
            state.clock = clock
            if isFarLower { (state.cursor, state.awaitsSnapshot) = (.empty, true) }
            return isFarLower
        }
    }

    /// Drops the snapshot that the ended stream left unfinished. `failure` is the stream's error, if it had one.
    func streamEnded(_ failure: Failure?) {
        state.withLock { state in
            state.incoming = nil
            state.feedRefusal = failure.flatMap { $0.tellsCause ? $0 : nil }
        }
    }

    /// The only tenant that the newest whole snapshot is about. Nil: it is about all tenants, or none has come.
    var onlyTenantID: Text? { state.withLock { $0.revocations.onlyTenantID } }

    /// The failure for which the server does not give the feed, for example because the credential itself was revoked,
    /// or because it has too many streams.
    var feedRefusal: Failure? { state.withLock { $0.feedRefusal } }

    /// How long revocations may have been missed, and the server's time now. Nil before the first snapshot.
    func heard(_ local: Instant) -> (staleness: Duration, serverTime: Timestamp)? {
        state.withLock { state in state.clock.map { ($0.staleness(at: local), $0.time(at: local)) } }
    }

    var entryCount: Int { state.withLock { $0.revocations.entryCount } }

    func refusal(of token: VerifiedToken) -> RevocationState.Refusal? {
        state.withLock { $0.revocations.refusal(of: token) }
    }
}

extension Failure {
    /// Whether the failure is more than the server's absence: somebody may have to do something.
    fileprivate var tellsCause: Bool {
        switch code {
        case .unavailable, .cancelled, .deadlineExceeded: false
        default: true
        }
    }
}

extension Scope {
    /// The tenant of the feed. Nil: all tenants.
    fileprivate var onlyTenantID: Text? { if case .tenantID(let tenantID) = tenants { tenantID } else { nil } }
}
