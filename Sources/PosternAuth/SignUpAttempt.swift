import Base

/// A sign-up, or a sign-in with a custom token, whose answer is not known yet.
///
/// The server gives the answer again to the same request under the same id, and its tokens to the id alone.
struct SignUpAttempt: Sendable {
    /// What the server was asked for. It is never stored, because it may hold a password.
    enum Request: Sendable, Equatable {
        case anonymous
        case password(email: Secret, password: Secret)
        case customToken(Secret)
    }

    let id: [UInt8]
    let tenantID: Text
    /// Nil: an earlier process began the attempt.
    let request: Request?
    let since: Instant
    /// True if no call is under way for this attempt: its answer was lost, here or in an earlier process.
    var isOpen: Bool

    /// Whether the server takes `request` under this id for a repeat, and still answers it.
    func isRepeated(by request: Request, tenantID: Text, now: Instant) -> Bool {
        self.request == request && self.tenantID == tenantID && now < since.advanced(by: LostChange.lifetime)
    }
}

extension AuthError {
    /// True if the error says nothing about an earlier attempt: asking again later may tell its outcome.
    var leavesAttemptOpen: Bool { isRetryable || isLostAnswer || isCancellation || self.is(.channelClosed) }
}
