public import Base
public import JSON

/// The profile of a user, after it was proved that the provider reports it and reports it to this client.
public struct ProviderProfile: Sendable, Equatable {
    /// The user's identifier at the provider: 1 to 255 bytes.
    public var subject: Text
    /// The email as the provider wrote it. Empty: the provider reported none.
    public var email: Text = .empty
    /// Whether the provider calls the email verified. Nil: the provider does not say.
    public var isEmailVerified: Bool?
    /// The name as the provider sent it, which may be longer than a profile can hold, or have other characters.
    public var displayName: Text = .empty
    public var photoURL: Text = .empty
    /// The claims of the provider, as a JSON object: those that a `TrustPolicy` may look at.
    public var claims: JSONValue

    public init(subject: Text, claims: JSONValue) {
        self.subject = subject
        self.claims = claims
    }

    public static let subjectByteCountMax = 255
}
