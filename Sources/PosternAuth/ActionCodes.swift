public import Base
import Messages
import PosternClient

/// Options of a mail that carries a link.
///
/// ```swift
/// let settings = ActionCodeSettings(url: "https://shop.example/welcome", languageCode: "fr")
/// try await auth.sendSignInLink(toEmail: email, actionCodeSettings: settings)
/// ```
public struct ActionCodeSettings: Sendable, Equatable {
    /// The page that the user goes on to after the action page: an https URL whose host the tenant allows. Empty: no
    /// page.
    public var url: String
    /// The language of the mail, as a BCP 47 tag. Nil: `Auth.languageCode`.
    public var languageCode: String?

    /// Creates the options. By default the action page leads nowhere and the mail has the language of the `Auth`.
    public init(url: String = "", languageCode: String? = nil) {
        self.url = url
        self.languageCode = languageCode
    }
}

/// The purpose of a mailed code, as `Auth.checkActionCode` reports it before the code is used.
///
/// ```swift
/// let info = try await auth.checkActionCode(link)
/// if info.operation == .verifyEmail { print("Confirm that \(info.email) is yours.") }
/// ```
public struct ActionCodeInfo: Sendable, Equatable {
    /// The action that a code performs.
    public enum Operation: Sendable, Equatable {
        /// Proves that the email belongs to the user.
        case verifyEmail
        /// Sets a new password: `Auth.confirmPasswordReset`.
        case passwordReset
        /// Signs in: `Auth.signIn(withEmail:link:)`.
        case emailLink
        /// Replaces the account's email by the address that got the mail.
        case verifyAndChangeEmail
        /// Restores the account's previous email.
        case recoverEmail
        /// "This was not me": takes the email away from the account that claims it.
        case rejectEmail
        /// Removes a second factor that was enrolled, and ends every session.
        case revertSecondFactorAddition
        /// A purpose that a newer server knows and this library does not.
        case unknown
    }

    /// The action that the code performs.
    public let operation: Operation
    /// The account's email. For a code that changes the email: the new one.
    public let email: String
    /// The email that the code replaces. Nil for a code that changes no email.
    public let previousEmail: String?
    /// The account that the email would belong to, or belongs to already. Nil for codes that connect no email with an
    /// account.
    public let account: JoinedAccount?

    /// The account that a code connects the email with.
    ///
    /// Show it before `Auth.applyActionCode`. Somebody who got the mail by mistake then sees that the account is not
    /// theirs.
    public struct JoinedAccount: Sendable, Equatable {
        /// The account's display name. Nil: it has none.
        public let displayName: String?
        /// When the account was created, by the server's clock.
        public let creationDate: Timestamp
        /// How many sessions of the account are live.
        public let liveSessionCount: Int
        /// The account's ways to sign in: "password", "emailLink", "phone", or a provider, for example "google.com".
        public let signInMethods: [String]
    }
}

extension ActionCodeInfo {
    init(_ response: AccountsCheckOobCodeResponse) {
        operation =
            switch response.requestType {
            case .verifyEmail: .verifyEmail
            case .passwordReset: .passwordReset
            case .emailSignin: .emailLink
            case .verifyAndChangeEmail: .verifyAndChangeEmail
            case .recoverEmail: .recoverEmail
            case .rejectEmail: .rejectEmail
            case .revertSecondFactorAddition: .revertSecondFactorAddition
            case .unspecified: .unknown
            }
        email = response.newEmail.stringOrNil ?? response.email.string
        previousEmail = response.newEmail.isEmpty ? nil : response.email.string
        account = response.account.map {
            JoinedAccount(
                displayName: $0.displayName.stringOrNil, creationDate: Timestamp(microseconds: $0.createdAtMicros),
                liveSessionCount: Int($0.liveSessionCount), signInMethods: $0.signInMethods.map(\.string))
        }
    }
}

extension Backend {
    func sendCode(
        _ type: OobRequestType, email: Text = .empty, newEmail: Text = .empty, idToken: Text = .empty,
        settings: ActionCodeSettings
    ) async throws(AuthError) {
        let request = AccountsSendOobCodeRequest(
            tenantID: tenantID, requestType: type, email: email, newEmail: newEmail, idToken: idToken,
            continueURL: try text(settings.url, .invalidContinueURI), endUserIP: endUserIP,
            locale: try settings.languageCode.map { code throws(AuthError) in try text(code) } ?? language.code)
        _ = try await call { try await accounts.sendOobCode(request) }
    }
}
