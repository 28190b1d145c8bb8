import Base
import Rules

/// The reason why a credential that is no API key is refused, as the metadata `cause` of CALLER_UNAUTHENTICATED. A
/// caller is told what is wrong with the form of its JWT, and nothing about accounts and keys.
enum CallerFault: String, Error {
    /// The value does not begin with `Bearer `.
    case scheme = "SCHEME"
    /// No JWT with the claims `iss` = `sub`, `aud`, `iat` and `exp`.
    case malformed = "MALFORMED"
    /// The header's `typ` is another one.
    case type = "TYPE"
    /// The header has no `kid`.
    case keyID = "KEY_ID"
    case audience = "AUDIENCE"
    case expired = "EXPIRED"
    /// The JWT is not yet valid, or valid for longer than an hour.
    case times = "TIMES"
    /// No such account, a disabled one or one without a role; no such key, a revoked one; a wrong signature.
    case notAuthentic = "NOT_AUTHENTIC"

    /// `audience`: the one that the server takes.
    func failure(audience: Text) -> Failure {
        let what =
            switch self {
            case .scheme: "The value of `authorization` does not begin with `Bearer `."
            case .malformed: "The credential is neither an API key nor a JWT as a service account writes it."
            case .type: "The JWT's `typ` is not \"\(CallerDirectory.jwtType)\"."
            case .keyID: "The JWT's header has no `kid`."
            case .audience: "The JWT's `aud` is not \"\(audience)\"."
            case .expired: "The JWT has expired."
            case .times: "The JWT is not valid yet, or for longer than an hour."
            case .notAuthentic: "The JWT is not signed by a service account of this project that may call."
            }
        let failure = Failure(.callerUnauthenticated, what, metadata: [Failure.Entry("cause", rawValue)])
        // All other faults are in the bytes alone, so that no node of a cluster answers otherwise.
        return self == .notAuthentic ? failure : failure.resting(on: .request)
    }
}
