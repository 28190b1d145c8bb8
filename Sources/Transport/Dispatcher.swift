public import Base
public import Reactor
public import TLS
public import Wire

/// The service that answers the requests of all connections. Called on the connection's loop.
public protocol Dispatcher: AnyObject, Sendable {
    /// Makes the dispatcher's own data about a new connection, for example the caller's identity.
    func makeConnectionContext() -> AnyObject

    /// The client showed a certificate that one of the server's authorities signed. Called before anything else.
    func identified(by certificate: PeerCertificate, _ connection: isolated Connection)

    /// The client presented a credential in HELLO.
    func authenticate(_ authorization: Text, on connection: isolated Connection)

    /// A request brought a credential, which counts for this request only. A good one gives the connection its larger
    /// limits.
    func present(_ authorization: Text, on connection: isolated Connection)

    /// How a call of this method is opened; nil when there is no such method.
    func kind(service: UnsafeRawBufferPointer, method: UnsafeRawBufferPointer) -> StreamKind?

    /// The page at a path, which may end with a query; nil when there is none. `path` and `authorization` are valid
    /// during the call only.
    func page(
        _ path: UnsafeRawBufferPointer, authorization: UnsafeRawBufferPointer?, on connection: isolated Connection
    ) -> HTTPResponse?

    /// The connection is closed; nothing comes from it any more.
    func closed(_ connection: isolated Connection)

    /// The connection is about to decode its input, all of which was received before this call.
    func batchBegins(on connection: isolated Connection)

    /// The batch that `batchBegins` began has ended, on the same connection. No other connection's batch comes between.
    func batchEnded(on connection: isolated Connection)

    /// Answers a request with exactly one of `respond`, `fail` or `run`. `request` is valid during the call only.
    func handle(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection)
}

extension Dispatcher {
    public func closed(_ connection: isolated Connection) {}
    public func batchBegins(on connection: isolated Connection) {}
    public func batchEnded(on connection: isolated Connection) {}
    public func present(_ authorization: Text, on connection: isolated Connection) {}
    public func kind(service: UnsafeRawBufferPointer, method: UnsafeRawBufferPointer) -> StreamKind? { .unary }
    public func page(
        _ path: UnsafeRawBufferPointer, authorization: UnsafeRawBufferPointer?, on connection: isolated Connection
    ) -> HTTPResponse? { nil }
    public func identified(by certificate: PeerCertificate, _ connection: isolated Connection) {}
}

/// Counters of the transport, for /metrics.
public final class TransportMetrics: Sendable {
    public let connectionsOpen = Gauge()
    public let connectionsAccepted = Counter()
    public let connectionsRefused = Counter()
    /// Connections that showed no credential in time.
    public let connectionsWithoutCredentialEnded = Counter()
    /// Connections without a credential that gave up their place for a new one.
    public let connectionsDisplaced = Counter()
    /// Connections whose peer did not answer a PING.
    public let connectionsSilent = Counter()
    /// Connections that were closed for the memory they held.
    public let connectionsClosedForMemory = Counter()
    /// Calls that were refused because too much memory was held.
    public let pagesRefused = Counter()
    /// Calls that wait for their turn to make a page of a list.
    public let pagesWaiting = Gauge()
    /// Handshakes that were ended because there were too many, and because they took too long.
    public let handshakesDisplaced = Counter()
    public let handshakesTimedOut = Counter()
    public let bytesReceived = Counter()
    public let bytesSent = Counter()
    /// Connections whose first byte belongs to no protocol that is spoken here.
    public let connectionsUnknown = Counter()
    public let framesRefused = Counter()

    public init() {}
}
