import Base
import JSON
import Rules

extension ProviderProfile {
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
