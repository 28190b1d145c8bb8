public import Base
public import JSON

/// What a provider says of a user, after it was proved that the provider says it and says it to this client.
public struct ProviderProfile: Sendable, Equatable {
    /// The user's identifier there: 1 to 255 bytes.
    public var subject: Text
    /// Empty = told none. As it came.
    public var email: Text = .empty
    /// Nil: the provider says nothing about it.
    public var isEmailVerified: Bool?
    /// As it came: may be longer or stranger than a profile can hold.
    public var displayName: Text = .empty
    public var photoURL: Text = .empty
    /// Everything it said; an object.
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

    /// JSON true and false, or the same as text. Anything else is no yes.
    private static func flag(_ value: JSONValue?) -> Bool? {
        switch value {
        case nil, .null: nil
        case .bool(let flag): flag
        case .string("true"): true
        default: false
        }
    }
}
