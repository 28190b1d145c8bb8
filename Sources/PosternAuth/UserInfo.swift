public import Base
import Messages

/// A way to sign in that is linked to a user, with what its provider says of them.
public struct UserInfo: Sendable, Equatable {
    /// "password", "phone", "google.com", "oidc.<name>", …
    public let providerID: String
    /// The user's identifier at the provider: the email for "password".
    public let uid: String
    /// This and the rest as the provider told them when it was last used.
    public let email: String?
    public let displayName: String?
    public let photoURL: String?
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

/// When an account came into being and was last signed in to, by the server's clock.
public struct UserMetadata: Sendable, Equatable {
    public let creationDate: Timestamp
    public let lastSignInDate: Timestamp
}

extension Text {
    /// Nil for nothing: on the wire an absent text is an empty one.
    var stringOrNil: String? { isEmpty ? nil : string }
}
