public import Base
public import Messages

/// An end user's identity at a provider, verified with the provider.
public struct FederatedIdentity: Sendable, Equatable {
    /// "google.com", "oidc.<name>", …
    public var providerID: Text
    /// The user's identifier at the provider; never used for anybody else there.
    public var rawID: Text
    /// The issuer of `rawID` (`ProviderConfiguration.identityIssuer`). Another issuer may give the same identifier to
    /// another person.
    public var issuer: Text
    /// Empty = the provider stated no email.
    public var email: Text
    /// The provider's claim; by itself it proves nothing.
    public var isEmailVerifiedByProvider: Bool
    /// Whether this provider is trusted to know that the email is this user's.
    public var isEmailTrusted: Bool
    public var displayName: Text
    public var photoURL: Text
    /// The time of the last change of the provider's configuration under which the identity was proved.
    public var providerUpdatedAt = Timestamp.zero
    /// When the proof ends, if it came in a pending token: a new pending token for it ends no later. Nil: proved just
    /// now.
    public var provedUntil: Timestamp?
    /// The id of the proof, the same in all its pending tokens. Empty: proved just now, or by a token of an older
    /// server.
    public var proofID: [UInt8] = []

    public init(
        providerID: Text, rawID: Text, issuer: Text = .empty, email: Text = .empty,
        isEmailVerifiedByProvider: Bool = false,
        isEmailTrusted: Bool = false, displayName: Text = .empty, photoURL: Text = .empty
    ) {
        self.providerID = providerID
        self.rawID = rawID
        self.issuer = issuer
        self.email = email
        self.isEmailVerifiedByProvider = isEmailVerifiedByProvider
        self.isEmailTrusted = isEmailTrusted
        self.displayName = displayName
        self.photoURL = photoURL
    }

    /// The identity as an account lists it.
    public var entry: ProviderInfo {
        ProviderInfo(
            providerID: providerID, rawID: rawID, email: email, displayName: displayName, photoURL: photoURL,
            issuer: issuer)
    }
}
