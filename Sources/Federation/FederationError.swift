/// The reason why a provider's credential proved nothing. Holds nothing that came from the provider or the end user.
public enum FederationError: Error, Sendable, Equatable {
    /// The flaw of an ID token. The caller gets the raw value as `detail`.
    public enum Flaw: String, Sendable, CaseIterable {
        /// The token is not a JWT in the form of RFC 7515, is too long, has claims that are no JSON object, or is
        /// another kind of token than an ID token.
        case malformed = "MALFORMED"
        /// No key of the provider has this id and algorithm.
        case unknownKey = "UNKNOWN_KEY"
        case badSignature = "BAD_SIGNATURE"
        case wrongIssuer = "WRONG_ISSUER"
        case wrongAudience = "WRONG_AUDIENCE"
        case expired = "EXPIRED"
        /// `iat` or `nbf` is in the future, or there is no `iat`.
        case notYetValid = "NOT_YET_VALID"
        /// The nonce differs from the caller's, or the credential cannot carry a nonce.
        case wrongNonce = "WRONG_NONCE"
        /// The token carries a nonce and the caller gave none.
        case missingNonce = "MISSING_NONCE"
        case missingSubject = "MISSING_SUBJECT"
    }

    /// The way in which the provider failed to answer.
    public enum Outage: String, Sendable, CaseIterable {
        case unreachable = "UNREACHABLE"
        case slow = "SLOW"
        /// The provider has no TLS, or its certificate is not valid.
        case untrusted = "UNTRUSTED_CERTIFICATE"
        case addressNotAllowed = "ADDRESS_NOT_ALLOWED"
        case tooLarge = "ANSWER_TOO_LARGE"
        case redirected = "REDIRECTED"
        /// The provider reported an error of its own, or gave an answer that makes no sense.
        case badAnswer = "BAD_ANSWER"
    }

    /// A mistake in the configuration, which an operator has to correct.
    public enum Fault: String, Sendable, CaseIterable {
        case noIssuer = "NO_ISSUER"
        case badEndpoint = "BAD_ENDPOINT"
        case noKeys = "NO_JWKS_ENDPOINT"
        case noAuthorizationEndpoint = "NO_AUTHORIZATION_ENDPOINT"
        case noTokenEndpoint = "NO_TOKEN_ENDPOINT"
        case noUserInfoEndpoint = "NO_USER_INFO_ENDPOINT"
        case noClientSecret = "NO_CLIENT_SECRET"
        /// Apple's private key is no PEM of a P-256 key.
        case badPrivateKey = "BAD_PRIVATE_KEY"
        /// The discovery document names another issuer.
        case otherIssuer = "OTHER_ISSUER"
        /// The provider does not accept client id and secret.
        case clientRefused = "CLIENT_REFUSED"
    }

    case flawed(Flaw)
    /// The provider does not accept the token or code, or it was used before.
    case rejected
    /// The access token was issued to another application.
    case otherClient
    /// It is unknown to which application the access token was issued.
    case unboundToken
    case unavailable(Outage)
    case misconfigured(Fault)
    /// Too many requests to this tenant's providers are under way.
    case overloaded
}
