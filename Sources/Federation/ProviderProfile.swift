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

    static let subjectByteCountMax = 255

    /// The standard claims (OpenID Connect Core 1.0 §5.1) of an ID token or a user-info answer.
    init(openID claims: JSONValue) throws(FederationError) {
        guard let subject = claims.member("sub")?.text, (1...Self.subjectByteCountMax).contains(subject.byteCount)
        else {
            throw .flawed(.missingSubject)
        }
        self.init(subject: subject, claims: claims)
        email = claims.member("email")?.text ?? .empty
        isEmailVerified = Self.flag(claims.member("email_verified"))
        displayName = claims.member("name")?.text ?? .empty
        photoURL = claims.member("picture")?.text ?? .empty
    }

    /// The value of a flag: JSON true and false, or the same as a string. Anything else counts as false.
    private static func flag(_ value: JSONValue?) -> Bool? {
        switch value {
        case nil, .null: nil
        case .bool(let flag): flag
        case .string("true"): true
        default: false
        }
    }
}
