public import Base

/// The credential that a channel presents on every connection.
///
/// ```swift
/// let channel = try Channel(address: "127.0.0.1:7400", credentials: .apiKey(apiKey))
/// print(channel.options.timeout)
/// ```
public enum Credentials: Sendable {
    /// An API key, `pk_…`. It is sent as `Bearer pk_…`.
    case apiKey(Secret)
    /// No credential: for calls that need none, or that carry `CallOptions.authorization`.
    case none

    /// The credential as HELLO and the metadata entry `authorization` carry it.
    var authorization: Text {
        get throws(Failure) {
            switch self {
            case .none: return .empty
            case .apiKey(let key):
                guard let text = key.withBytes({ Text(validating: [UInt8]("Bearer ".utf8) + $0) }) else {
                    throw .invalid(.invalidAPIKey, field: "credentials", "must be UTF-8 without NUL")
                }
                return text
            }
        }
    }
}

/// The options of a channel. The defaults suit a back end in the server's network.
///
/// ```swift
/// var options = ChannelOptions()
/// options.timeout = .seconds(3)
/// options.waitsForConnection = true
/// let channel = try Channel(address: "127.0.0.1:7400", credentials: .apiKey(apiKey), options: options)
/// print(channel.options.timeout)
/// ```
public struct ChannelOptions: Sendable {
    /// The client's name in HELLO, for the server's log.
    public var software: Text = "postern-client"
    /// The longest time of a unary call that sets no timeout of its own.
    public var timeout = Duration.seconds(10)
    /// The threads that the channel works on.
    public var loops = ChannelLoops.shared
    /// TLS, and how the server is verified. Nil: plain text, which is for servers on the same machine.
    public var tls: TLSOptions?
    /// The longest time that connecting to one address may take, with the TLS handshake and the server's first answer.
    /// Looking up a name may take as long again.
    public var connectTimeout = Duration.seconds(5)
    /// How calls are divided among several servers, or the several addresses of one name.
    public var loadBalancing = LoadBalancingPolicy.pickFirst
    /// The pauses between attempts to connect to an address.
    public var reconnect = ReconnectBackoff()
    /// Makes every call wait for a connection until its deadline, as `CallOptions.waitsForConnection` does for one
    /// call.
    public var waitsForConnection = false
    /// Makes each server of a cluster answer only after it has seen this channel's writes, whichever server took them.
    /// A server that lags asks its cluster first. Has no effect outside of a cluster.
    public var readsOwnWrites = true
    /// The most connections of the channel. When streams hold three quarters of a connection's places, the next stream
    /// gets another connection, so that calls find places. Above the limit, streams fail with RESOURCE_EXHAUSTED.
    public var connectionsMax = 8
    /// The rules for repeating calls.
    public var retry = RetryPolicy()
    /// The most calls that may wait for places in the server's limit of calls in flight. Further calls fail with
    /// RESOURCE_EXHAUSTED.
    public var waitingCallsMax = 4_096
    /// The silence after which the channel sends a PING, while calls are in flight. Nil: never; TCP then finds a dead
    /// connection after a quarter of an hour.
    ///
    /// While unary calls are in flight that may all be repeated, this and `keepaliveTimeout` are cut to a third of
    /// `timeout`, or to a second if that is longer. So a dead connection is found while there is time to repeat the
    /// calls on another one. A call that cannot be repeated gains nothing by an early end of a slow connection.
    public var keepalive: Duration? = .seconds(10)
    /// Sends these PINGs also while no call is in flight, so that a connection which died meanwhile is replaced before
    /// the next call needs it.
    public var keepaliveWithoutCalls = false
    /// How long the channel waits for the answer to a PING before it gives up the connection. See `keepalive`.
    public var keepaliveTimeout = Duration.seconds(15)
    /// The bounds of messages from the server.
    public var limits = Self.clientLimits

    /// Creates the defaults.
    public init() {}

    /// The longest silence of a server, and the longest wait for its answer to a PING, while unary calls are in flight
    /// that may all be repeated.
    var callPatience: Duration { max(.seconds(1), timeout / 3) }

    /// Above the server's limits: a page of users holds far more than any request, and the server is a known peer.
    private static let clientLimits: Limits = {
        var limits = Limits()
        limits.messages.fieldsPerMessageMax = 65_536
        limits.messages.fieldsMax = 1_048_576
        limits.messages.arenaBudgetFactor = 64
        limits.messages.arenaBudgetFloor = 1024 * 1024
        limits.messages.arenaBudgetMax = 128 * 1024 * 1024
        return limits
    }()
}

/// The options of one call.
///
/// ```swift
/// let options = CallOptions(timeout: .seconds(2), requestID: "checkout-17")
/// let answer = try await UsersClient(channel: channel).get(UsersGetRequest(uid: uid), options: options)
/// print(answer.user?.email ?? "")
/// ```
public struct CallOptions: Sendable {
    /// The longest time until the answer, retries included. Nil: the channel's timeout for unary calls, no limit for
    /// streams.
    public var timeout: Duration?
    /// A credential in place of the channel's, for example `Bearer pk_…`.
    public var authorization: Secret?
    /// The id of the call in the server's log and in its errors. Empty: the server makes one.
    public var requestID: Text
    /// A key under which the server does a change only once, however often it is sent. Empty: none.
    public var idempotencyKey: Text
    /// The W3C trace context, which the server logs. Empty: none.
    public var traceparent: Text
    /// Makes the call wait for a connection until its deadline instead of failing at once. The channel then tries to
    /// connect at once, unless it did within the last 200 ms.
    public var waitsForConnection: Bool
    /// Makes a server of a cluster answer only after it has seen everything that was acknowledged, on any server,
    /// before the call. The server asks its cluster first. Has no effect outside of a cluster.
    public var readsLatest: Bool

    /// Creates the options of a call.
    public init(
        timeout: Duration? = nil, authorization: Secret? = nil, requestID: Text = .empty,
        idempotencyKey: Text = .empty, traceparent: Text = .empty, waitsForConnection: Bool = false,
        readsLatest: Bool = false
    ) {
        self.timeout = timeout
        self.authorization = authorization
        self.requestID = requestID
        self.idempotencyKey = idempotencyKey
        self.traceparent = traceparent
        self.waitsForConnection = waitsForConnection
        self.readsLatest = readsLatest
    }
}
