public import Base
import PosternClient

/// Why something could not be done: FirebaseAuth's code, and all that the server said.
public struct AuthError: Error, Sendable {
    /// What an administrator of the tenant wants its users to be told instead; shown as it is.
    public struct Guidance: Sendable, Equatable {
        public let message: String
        /// https, or empty.
        public let url: String
        /// BCP 47, or empty.
        public let languageCode: String
    }

    /// Why a session is over, where the server said so.
    public enum SessionEndCause: Sendable, Equatable {
        /// A refresh token was used by two holders: one of them may have stolen it.
        case revokedByReuse
        case passwordChanged
        case signedOut
        case admin
        case expired
        /// Of a newer server.
        case other(String)
    }

    public let code: AuthErrorCode
    /// The server's word, UPPER_SNAKE; finer than `code`. Of `ClientReason` where the server was not reached.
    public let reason: String
    /// For developers: what happened and what to do. Holds no secret.
    public let message: String
    /// The email that has an account, or belongs to another one.
    public var email: String?
    /// The credential that was proved, to be linked after signing in another way, or to sign in to its own account;
    /// good for ten minutes.
    public var updatedCredential: AuthCredential?
    /// How long to wait before asking again.
    public var retryAfter: Duration?
    /// The same call may succeed later, unchanged.
    public var isRetryable = false
    /// To quote when asking whoever runs the server.
    public var requestID: String?
    public var guidance: Guidance?
    public var cause: SessionEndCause?
    /// What the RPC failed with; nil for what was refused here.
    public let failure: Failure?

    init(_ code: AuthErrorCode, reason: String, _ message: String) {
        self.code = code
        self.reason = reason
        self.message = message
        self.failure = nil
    }

    /// `attempted` is the credential that was refused, if it was one.
    init(_ failure: Failure, attempted: AuthCredential? = nil) {
        code = AuthErrorReasons.code(of: failure)
        reason = failure.reason
        message = failure.message
        email = failure.metadataValue("email")
        retryAfter = failure.retryAfter
        isRetryable = Self.isRetryable(failure)
        requestID = failure.metadataValue("request_id")
        guidance = failure.guidance.map { Guidance(message: $0.message, url: $0.url, languageCode: $0.locale) }
        cause = failure.metadataValue("cause").flatMap { failure.reason == "TOKEN_EXPIRED" ? .init($0) : nil }
        self.failure = failure
        if let token = failure.metadataValue("pending_token") {
            updatedCredential = AuthCredential(
                provider: attempted?.provider ?? "", kind: .pending(Secret(token)))
        }
    }

    private static func isRetryable(_ failure: Failure) -> Bool {
        switch failure.code {
        case .unavailable: failure.reason != ClientReason.channelClosed
        case .resourceExhausted: failure.reason != ClientReason.messageTooLarge
        case .deadlineExceeded, .aborted, .cancelled: true
        default: false
        }
    }
}

extension AuthError {
    /// The user's tokens are good for nothing any more, and no other answer will come.
    var endsSession: Bool {
        ["TOKEN_EXPIRED", "INVALID_REFRESH_TOKEN", "USER_DISABLED", "USER_NOT_FOUND"].contains(reason)
    }

    /// The ID token, or the user it names, was refused: a refresh tells whether that is final.
    var doubtsIDToken: Bool { endsSession || reason == "INVALID_ID_TOKEN" }

    /// Nobody knows whether the call was done.
    var isLostAnswer: Bool {
        switch reason {
        case ClientReason.connectionLost, ClientReason.deadlineExceeded, ClientReason.malformedResponse: true
        default: false
        }
    }

    /// The task was cancelled, and nothing is wrong.
    var isCancellation: Bool { reason == ClientReason.cancelled }

    static let noCurrentUser = AuthError(.nullUser, reason: "NO_CURRENT_USER", "Nobody is signed in.")
    static let cancelled = AuthError(
        Failure(.cancelled, ClientReason.cancelled, "The task was cancelled."))

    static func malformedAnswer(_ what: String) -> AuthError {
        AuthError(.internalError, reason: ClientReason.malformedResponse, "The server's answer has no \(what).")
    }
}

extension AuthError.SessionEndCause {
    init(_ word: String) {
        self =
            switch word {
            case "REVOKED_BY_REUSE": .revokedByReuse
            case "PASSWORD_CHANGED": .passwordChanged
            case "SIGNED_OUT": .signedOut
            case "ADMIN": .admin
            case "EXPIRED": .expired
            default: .other(word)
            }
    }
}

extension AuthError {
    /// `code.rawValue`, FirebaseAuth's number.
    public var errorCode: Int { code.rawValue }

    /// What to show to a person: the administrator's own words where there are any, else `message`.
    public var localizedDescription: String { guidance?.message ?? message }

    // What Foundation makes an NSError of, in applications that use it: its `domain` and `code` are then
    // FirebaseAuth's.
    public var _domain: String { "FIRAuthErrorDomain" }
    public var _code: Int { code.rawValue }
}

extension AuthError: CustomStringConvertible {
    public var description: String { "\(code) (\(code.rawValue), \(reason)): \(message)" }
}
