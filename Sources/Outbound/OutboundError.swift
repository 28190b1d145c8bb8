/// The reason why another server could not be called. Holds nothing of that server's answer, and no address, name or
/// secret.
public enum OutboundError: Error, Sendable, Equatable {
    /// Not a URL that may be asked, or a header field with a character that cannot be sent.
    case malformedRequest
    /// The name resolves to addresses that the `NetworkPolicy` does not permit, and to no others.
    case addressNotAllowed
    case cannotResolve
    case cannotConnect
    /// Connecting or the answer took too long.
    case timedOut
    /// No TLS, or a certificate that does not hold.
    case untrusted
    /// The answer is longer than it may be.
    case tooLarge
    /// The answer is a redirection: never followed.
    case redirected
    /// The connection broke, or what came was not the protocol.
    case broken
    /// Too many requests of this tenant are on their way already.
    case overloaded
}
