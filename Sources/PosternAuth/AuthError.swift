public import Base
import PosternClient

/// A sign-in that waits for a second factor: a `MultiFactorResolver` or a `MultiFactorEnrollment`.
protocol PendingSignIn: Sendable {}

/// The error of every method: FirebaseAuth's code, and everything that the server reported.
///
/// ```swift
/// do {
///     try await auth.signIn(withEmail: email, password: password)
/// } catch let error as AuthError {
///     print(error.code, error.reason, error.localizedDescription)
/// }
/// ```
public struct AuthError: Error, Sendable {
    /// A message that the tenant's administrator wrote for end users. Show it as it is.
    public struct Guidance: Sendable, Equatable {
        /// The text for the user.
        public let message: String
        /// A page that explains more: an https URL, or empty.
        public let url: String
        /// The language of `message`, as a BCP 47 tag, or empty.
        public let languageCode: String
    }

    /// The cause of a session's end.
    public enum SessionEndCause: Sendable, Equatable {
        /// Two holders used the same refresh token. One of them may have stolen it.
        case revokedByReuse
        /// The password was changed or reset.
        case passwordChanged
        /// The user signed out, or ended the session from another device.
        case signedOut
        /// An administrator ended the session.
        case admin
        /// The session was not used for too long, or reached its greatest age.
        case expired
        /// A cause that a newer server knows and this library does not.
        case other(String)
    }

    /// FirebaseAuth's code of the error.
    public let code: AuthErrorCode
    /// The server's reason in UPPER_SNAKE, finer than `code`. When the server was not reached: a reason that the client
    /// libraries make.
    public let reason: String
    /// An explanation for developers: what happened and what to do. Holds no secret.
    public let message: String
    /// The email that has an account already, or that belongs to another account. Nil for errors about no email.
    public var email: String?
    /// The identity that the user has proved, as a credential: link it after signing in another way, or sign in to its
    /// own account; after a refusal for too many attempts, sign in with it later. Valid for ten minutes.
    public var updatedCredential: AuthCredential?
    /// The object that finishes the sign-in, if the server wants a second factor.
    var pendingSignIn: (any PendingSignIn)?
    /// How long to wait before calling again. Nil: the server did not say.
    public var retryAfter: Duration?
    /// True if the same call may succeed later, unchanged.
    public var isRetryable = false
    /// The id of the request in the server's log. Quote it to those who run the server.
    public var requestID: String?
    /// The administrator's message for the user. Nil: the tenant has none, or the error is not a refusal by a switch.
    public var guidance: Guidance?
    /// The cause of the session's end. Nil for errors that end no session, and where the server did not say.
    public var cause: SessionEndCause?
    /// The error of the RPC. Nil for errors that this library found before calling the server.
    public let failure: Failure?

    /// Makes the error of a call that the library itself refuses. Without `code`, the error has the reason's own code.
    init(_ reason: Reason, as code: AuthErrorCode? = nil, _ message: String) {
        self.code = code ?? AuthErrorCode(reason) ?? AuthErrorCode(reason.status)
        self.reason = reason.name
        self.message = message
        self.failure = nil
    }

    /// Translates a failure of the server. `attempted` is the credential that was refused, if there was one.
    init(_ failure: Failure, attempted: AuthCredential? = nil) {
        code = AuthErrorCode(failure)
        reason = failure.reason
        message = failure.message
        email = failure.metadataValue("email")
        retryAfter = failure.retryAfter
        isRetryable = Self.isRetryable(failure)
        requestID = failure.metadataValue("request_id")
        guidance = failure.guidance.map { Guidance(message: $0.message, url: $0.url, languageCode: $0.locale) }
        cause = failure.metadataValue("cause").flatMap { failure.is(.tokenExpired) ? .init($0) : nil }
        self.failure = failure
        if let proof = failure.metadataValue("temporary_proof"), let number = failure.metadataValue("phone_number") {
            updatedCredential = AuthCredential(
                provider: PhoneAuthProviderID, kind: .temporaryProof(Secret(proof), phoneNumber: number))
        }
        if let token = failure.metadataValue("pending_token") {
            updatedCredential = AuthCredential(
                provider: attempted?.provider ?? "", kind: .pending(Secret(token)))
        }
    }

    private static func isRetryable(_ failure: Failure) -> Bool {
        switch failure.code {
        case .unavailable: !failure.is(.channelClosed)
        case .resourceExhausted: !failure.is(.messageTooLarge)
        case .deadlineExceeded, .aborted, .cancelled: true
        default: false
        }
    }
}

extension AuthError {
    /// Whether the error's reason is one of these.
    func `is`(_ reasons: Reason...) -> Bool { reasons.contains { $0.name == reason } }

    /// True if the server will not accept the user's tokens any more.
    var endsSession: Bool {
        self.is(.tokenExpired, .invalidRefreshToken, .userDisabled, .userNotFound)
    }

    /// True if the server refused the ID token, or the user it names. A refresh tells whether that is final.
    var doubtsIDToken: Bool { endsSession || self.is(.invalidIDToken) }

    /// True if the server may or may not have done the call.
    var isLostAnswer: Bool {
        self.is(.connectionLost, .deadlineExceeded, .malformedResponse, .storeUnavailable)
    }

    /// True if the task was cancelled, and nothing is wrong.
    var isCancellation: Bool { self.is(.cancelled) }

    static let noCurrentUser = AuthError(.noCurrentUser, "Nobody is signed in.")
    static let cancelled = AuthError(
        Failure(.cancelled, "The task was cancelled."))

    static func malformedAnswer(_ what: String) -> AuthError {
        AuthError(.malformedResponse, "The server's answer has no \(what).")
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
    /// FirebaseAuth's number: `code.rawValue`.
    public var errorCode: Int { code.rawValue }

    /// The text to show to a person: `guidance?.message`, or else `message`.
    public var localizedDescription: String { guidance?.message ?? message }

    // Foundation, in applications that use it, makes an NSError of these two.

    /// The domain of the `NSError` that Foundation makes of this error: FirebaseAuth's.
    public var _domain: String { "FIRAuthErrorDomain" }
    /// The code of the `NSError` that Foundation makes of this error.
    public var _code: Int { code.rawValue }
}

extension AuthError: CustomStringConvertible {
    /// The code, its number, the reason and the message. Holds no secret.
    public var description: String { "\(code) (\(code.rawValue), \(reason)): \(message)" }
}
