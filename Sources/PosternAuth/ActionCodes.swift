import Base
import Messages
import PosternClient

/// What a mailed link leads to afterwards.
public struct ActionCodeSettings: Sendable, Equatable {
    /// Where the action page sends the user; https, or empty.
    public var url: String
    /// The mail's language, BCP 47; nil: `Auth.Configuration.languageCode`.
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
        /// Of a newer server.
        case unknown
    }

    public let operation: Operation
    /// The account's email: the new one, where the code changes it.
    public let email: String
    /// The email that the code replaces.
    public let previousEmail: String?
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
            case .unspecified: .unknown
            }
        email = response.newEmail.stringOrNil ?? response.email.string
        previousEmail = response.newEmail.isEmpty ? nil : response.email.string
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
            locale: try settings.languageCode.map { code throws(AuthError) in try text(code) } ?? languageCode)
        _ = try await call { try await accounts.sendOobCode(request) }
    }
}
