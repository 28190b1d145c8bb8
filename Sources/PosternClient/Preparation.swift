import Base

/// Work that may block and must be done before connecting: looking up a name, or reading the files of TLS.
struct Preparation {
    enum Result: Sendable {
        case addresses(Swift.Result<[ResolvedAddress], Failure>)
        case tls(Swift.Result<ClientTLS, Failure>)
    }

    let id: Int
    let action: LoadBalancer.Action
    /// The time at which the channel stops waiting. The worker goes on: the system cannot be told to stop.
    let until: Instant
}
