public import Base
import Messages

/// A way to sign in that is linked to a user, with the profile that its provider reported when it was last used.
///
/// ```swift
/// for info in user.providerData { print(info.providerID, info.email ?? "") }
/// ```
public struct UserInfo: Sendable, Equatable {
    /// The provider's id: "password", "phone", "google.com", "oidc.<name>", ….
    public let providerID: String
    /// The user's id at the provider. For "password": the email.
    public let uid: String
    /// The email at the provider. Nil: the provider reported none.
    public let email: String?
    /// The display name at the provider. Nil: the provider reported none.
    public let displayName: String?
    /// The URL of the photo at the provider. Nil: the provider reported none.
    public let photoURL: String?
    /// The phone number at the provider. Nil: the provider reported none.
    public let phoneNumber: String?

    init(_ provider: ProviderInfo) {
        providerID = provider.providerID.string
        uid = provider.rawID.string
        email = provider.email.stringOrNil
        displayName = provider.displayName.stringOrNil
        photoURL = provider.photoURL.stringOrNil
        phoneNumber = provider.phoneNumber.stringOrNil
    }
}

/// Two times of an account, by the server's clock.
///
/// ```swift
/// let metadata = user.metadata
/// print(metadata.creationDate.microseconds, metadata.lastSignInDate.microseconds)
/// ```
public struct UserMetadata: Sendable, Equatable {
    /// When the account was created.
    public let creationDate: Timestamp
    /// When the user last signed in.
    public let lastSignInDate: Timestamp
}

extension Text {
    /// The text as a string. Nil for an empty text: on the wire an absent text is an empty one.
    var stringOrNil: String? { isEmpty ? nil : string }
}
