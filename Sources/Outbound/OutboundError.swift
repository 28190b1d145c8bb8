/// The reason why another server could not be called. Holds nothing of that server's answer, and no address, name or
/// secret.
public enum OutboundError: Error, Sendable, Equatable {
    /// The URL may not be requested, or a header field has a character that cannot be sent.
    case malformedRequest
    /// The name resolves to addresses that the `NetworkPolicy` does not permit, and to no others.
    case addressNotAllowed
    case cannotResolve
    case cannotConnect
    /// The connection or the answer took too long.
    case timedOut
    /// The server has no TLS, or its certificate is not valid.
    case untrusted
    /// The answer is longer than it may be.
    case tooLarge
    /// The answer is a redirection, which is never followed.
    case redirected
    /// The connection broke, or the answer did not follow the protocol.
    case broken
    /// Too many requests and mails of this tenant, or of all tenants, are already under way. The server was not asked.
    case overloaded
}

extension OutboundError {
    /// The reason in words, for whoever set the other server: `the webhook: no connection to it`.
    public var explanation: String {
        switch self {
        case .malformedRequest: "its URL may not be requested"
        case .addressNotAllowed: "its address is not public, which needs allow_private_addresses"
        case .cannotResolve: "its name cannot be resolved"
        case .cannotConnect: "no connection to it"
        case .timedOut: "it took too long"
        case .untrusted: "it has no TLS, or its certificate is not valid"
        case .tooLarge: "its answer is too long"
        case .redirected: "it answered with a redirection, which is never followed"
        case .broken: "the connection broke, or its answer did not follow the protocol"
        case .overloaded: "too many requests of the tenant are on their way"
        }
    }
}
