import Base
import Messages

/// A proof of identity, made by `EmailAuthProvider`, `OAuthProvider`, `PhoneAuthProvider` or `CustomTokenProvider`, or
/// found in an error's `updatedCredential`.
///
/// A credential signs in (`Auth.signIn(with:)`), can be linked (`User.link(with:)`), or proves again that the user is
/// present (`User.reauthenticate(with:)`). Its secrets are wiped with the last copy and never printed.
///
/// ```swift
/// let credential = EmailAuthProvider.credential(withEmail: email, password: password)
/// try await user.reauthenticate(with: credential)
/// ```
public struct AuthCredential: Sendable {
    /// The provider id: "password", "google.com", …. Empty for an `updatedCredential` whose provider is unknown.
    public let provider: String
    let kind: Kind

    enum Kind: Sendable {
        case password(email: String, password: Secret)
        case emailLink(email: String, code: Secret)
        case idToken(Secret, rawNonce: String)
        case accessToken(Secret)
        case authorizationCode(Secret, redirectURI: String, codeVerifier: Secret, rawNonce: String)
        /// From a refusal: the identity that the user proved.
        case pending(Secret)
        case customToken(Secret)
        case phone(verificationID: String, code: Secret)
        /// From a refusal: the phone number that the user proved with a code.
        case temporaryProof(Secret, phoneNumber: String)
    }
}

extension AuthCredential: CustomStringConvertible {
    /// The kind of credential, without its secrets.
    public var description: String { "AuthCredential(\(provider))" }
}

/// Makes credentials of an email address: with a password, or with a mailed link.
///
/// ```swift
/// try await auth.signIn(with: EmailAuthProvider.credential(withEmail: email, link: link))
/// ```
public enum EmailAuthProvider {
    /// The provider id of both kinds: "password".
    public static let id = "password"

    /// Makes a credential of an email and its password.
    public static func credential(withEmail email: String, password: String) -> AuthCredential {
        AuthCredential(provider: id, kind: .password(email: email, password: Secret(password)))
    }

    /// Makes a credential of an email and the link that was mailed to it. `link` is the whole link or the code in it.
    public static func credential(withEmail email: String, link: String) -> AuthCredential {
        AuthCredential(provider: id, kind: .emailLink(email: email, code: Secret(ActionLink.code(in: link))))
    }
}

/// Makes credentials of custom tokens, for applications with a login of their own.
///
/// ```swift
/// let credential = CustomTokenProvider.credential(withToken: customToken)
/// try await user.reauthenticate(with: credential)
/// ```
public enum CustomTokenProvider {
    /// The provider id: "custom".
    public static let id = "custom"

    /// Makes a credential of a custom token: a JWT that one of the project's service accounts has signed.
    ///
    /// The credential signs in and reauthenticates. It cannot be linked.
    public static func credential(withToken token: String) -> AuthCredential {
        AuthCredential(provider: id, kind: .customToken(Secret(token)))
    }
}
