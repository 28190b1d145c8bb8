public import Base
import Messages
import PosternClient

/// What a mailed link leads to afterwards.
public struct ActionCodeSettings: Sendable, Equatable {
    /// Where the action page sends the user; https, or empty.
    public var url: String
    /// The mail's language, BCP 47; nil: `Auth.languageCode`.
    public var languageCode: String?

    public init(url: String = "", languageCode: String? = nil) {
        self.url = url
        self.languageCode = languageCode
    }
}

/// What a code out of a mail is for.
public struct ActionCodeInfo: Sendable, Equatable {
    public enum Operation: Sendable, Equatable {
        case verifyEmail
        case passwordReset
        case emailLink
        case verifyAndChangeEmail
        case recoverEmail
        /// "This was not me": takes the address away from the account.
        case rejectEmail
        /// Of a newer server.
        case unknown
    }

    public let operation: Operation
    /// The account's email: the new one, where the code changes it.
    public let email: String
    /// The email that the code replaces.
    public let previousEmail: String?
    /// The account that the address is about to join, or has joined; of the codes that are about that.
    public let account: JoinedAccount?

    /// Show it before `Auth.applyActionCode`: who got the mail by mistake sees that this is somebody else's account.
    public struct JoinedAccount: Sendable, Equatable {
        public let displayName: String?
        public let creationDate: Timestamp
        public let liveSessionCount: Int
        /// "password", "emailLink", "phone", or a provider, for example "google.com".
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
