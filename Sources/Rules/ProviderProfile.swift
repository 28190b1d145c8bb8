public import Base
public import JSON

/// The profile of a user, after it was proved that the provider reports it and reports it to this client.
public struct ProviderProfile: Sendable, Equatable {
    /// The user's identifier there: 1 to 255 bytes.
    public var subject: Text
    /// The email as the provider wrote it. Empty: the provider reported none.
    public var email: Text = .empty
    /// Whether the provider calls the email verified. Nil: the provider does not say.
    public var isEmailVerified: Bool?
    /// As it came: may be longer or stranger than a profile can hold.
    public var displayName: Text = .empty
    public var photoURL: Text = .empty
    /// All claims of the provider, as a JSON object.
    public var claims: JSONValue

    public init(subject: Text, claims: JSONValue) {
        self.subject = subject
        self.claims = claims
    }

    public static let subjectByteCountMax = 255
}
