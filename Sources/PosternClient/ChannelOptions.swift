public import Base

/// What a channel identifies itself with, on every connection it opens.
public enum Credentials: Sendable {
    /// `pk_…`, sent as `Bearer pk_…`.
    case apiKey(Secret)
    case none

    /// As HELLO and the metadata of the same name carry it.
    var authorization: Text {
        get throws(Failure) {
            switch self {
            case .none: return .empty
            case .apiKey(let key):
                guard let text = key.withBytes({ Text(validating: [UInt8]("Bearer ".utf8) + $0) }) else {
                    throw .invalid("INVALID_API_KEY", field: "credentials", "must be UTF-8 without NUL")
                }
                return text
            }
        }
    }
}

/// How a channel behaves; the defaults suit a back end on the same network.
public struct ChannelOptions: Sendable {
    /// Named in HELLO, for the server's log.
    public var software: Text = "postern-client"
    /// Deadline of a unary call that sets none.
    public var timeout = Duration.seconds(10)
    /// For one address of the server.
    public var connectTimeout = Duration.seconds(5)
    public var reconnect = ReconnectBackoff()
    /// Every call waits for a connection until its deadline, as if it had `CallOptions.waitsForConnection`.
    public var waitsForConnection = false
    /// Streams take places that calls would need: when three quarters of a connection's places hold streams, the next
    /// stream gets another connection, up to so many. One beyond fails with RESOURCE_EXHAUSTED.
    public var connectionsMax = 8
    public var retry = RetryPolicy()
    /// Calls that may wait because as many are in flight as the server takes; further ones fail with
    /// RESOURCE_EXHAUSTED.
    public var waitingCallsMax = 4_096
    /// With calls in flight and nothing heard for so long, ask with a PING; without an answer after
    /// `keepaliveTimeout` the connection is given up. Nil: never ask; a network that lost the connection without a word
    /// is then found out by TCP, after a quarter of an hour.
    public var keepalive: Duration? = .seconds(10)
    public var keepaliveTimeout = Duration.seconds(15)
    public var limits = Self.clientLimits

    public init() {}

    /// A page of users holds far more than any request: the server is not one stranger among many.
    private static let clientLimits: Limits = {
        var limits = Limits()
        limits.fieldsPerMessageMax = 65_536
        limits.fieldsMax = 1_048_576
        limits.arenaBudgetFactor = 64
        limits.arenaBudgetFloor = 1024 * 1024
        limits.arenaBudgetMax = 128 * 1024 * 1024
        return limits
    }()
}

/// What one call may set.
public struct CallOptions: Sendable {
    /// From now until the answer, retries included. Nil: the channel's for unary calls, none for streams.
    public var timeout: Duration?
    /// Instead of the channel's credential, for example `Bearer pk_…`.
    public var authorization: Secret?
    /// Names the call in the server's log and in its failures. Empty: the server makes one.
    public var requestID: Text
    /// Lets a mutation be sent again without being done again.
    public var idempotencyKey: Text
    /// W3C trace context.
    public var traceparent: Text
    /// Wait while there is no connection, until the deadline, instead of failing at once. A call that waits has the
    /// channel try to connect at once, unless it did within the last 200 ms.
    public var waitsForConnection: Bool

    public init(
        timeout: Duration? = nil, authorization: Secret? = nil, requestID: Text = .empty,
        idempotencyKey: Text = .empty, traceparent: Text = .empty, waitsForConnection: Bool = false
    ) {
        self.timeout = timeout
        self.authorization = authorization
        self.requestID = requestID
        self.idempotencyKey = idempotencyKey
        self.traceparent = traceparent
        self.waitsForConnection = waitsForConnection
    }
}

/// `ErrorInfo.reason` of the failures that the client itself makes.
public enum ClientReason {
    /// No connection could be made; the call was not sent. `retryAfter` is when the channel tries again.
    public static let connectionFailed = "CONNECTION_FAILED"
    /// The connection broke while the call was in flight; it may or may not have been done.
    public static let connectionLost = "CONNECTION_LOST"
    /// The server refused the stream again and again, without processing it.
    public static let refused = "REFUSED"
    public static let deadlineExceeded = "DEADLINE_EXCEEDED"
    public static let cancelled = "CANCELLED"
    /// More calls wait than `ChannelOptions.waitingCallsMax`.
    public static let tooManyWaitingCalls = "TOO_MANY_WAITING_CALLS"
    /// `ChannelOptions.connectionsMax` connections are full of streams.
    public static let tooManyStreams = "TOO_MANY_STREAMS"
    /// Above the frame size that the server takes.
    public static let messageTooLarge = "MESSAGE_TOO_LARGE"
    /// The answer is no message of the expected type.
    public static let malformedResponse = "MALFORMED_RESPONSE"
    /// `Channel.shutdown` was called.
    public static let channelClosed = "CHANNEL_CLOSED"
    /// `send` after `finish`, or after the stream's end.
    public static let streamClosed = "STREAM_CLOSED"
}
