import Base
import Messages

/// What proves who somebody is: made by `EmailAuthProvider`, `OAuthProvider` or `CustomTokenProvider`, or found in an
/// error's `updatedCredential`.
///
/// Signs in (`Auth.signIn(with:)`), is linked (`User.link(with:)`) or proves a user again
/// (`User.reauthenticate(with:)`). Its secrets are wiped with its last copy and never printed.
public struct AuthCredential: Sendable {
    /// "password", "google.com", …; empty for a pending credential whose provider nobody named.
    public let provider: String
    let kind: Kind

    enum Kind: Sendable {
        case password(email: String, password: Secret)
        case emailLink(email: String, code: Secret)
        case idToken(Secret, rawNonce: String)
        case accessToken(Secret)
        case authorizationCode(Secret, redirectURI: String, codeVerifier: Secret, rawNonce: String)
        /// From a refusal: the identity it proved.
        case pending(Secret)
        case customToken(Secret)
    }
}

extension AuthCredential: CustomStringConvertible {
    public var description: String { "AuthCredential(\(provider))" }
}

/// Credentials of an email address.
public enum EmailAuthProvider {
    /// The provider id of both kinds.
    public static let id = "password"

    public static func credential(withEmail email: String, password: String) -> AuthCredential {
        AuthCredential(provider: id, kind: .password(email: email, password: Secret(password)))
    }

    /// `link` is the whole link that was mailed, or the code in it.
    public static func credential(withEmail email: String, link: String) -> AuthCredential {
        AuthCredential(provider: id, kind: .emailLink(email: email, code: Secret(ActionLink.code(in: link))))
    }
}

/// Credentials of the application's own login.
public enum CustomTokenProvider {
    public static let id = "custom"

    /// `token` is a JWT of one of the project's service accounts. It signs in and proves again; it cannot be linked.
    public static func credential(withToken token: String) -> AuthCredential {
        AuthCredential(provider: id, kind: .customToken(Secret(token)))
    }
}
