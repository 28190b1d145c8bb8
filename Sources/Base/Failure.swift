/// The error of a refused call: what every failed RPC carries.
///
/// `reason` is the stable key that clients switch on: the name of a `Reason`, or a name that only a newer server knows.
/// `message` says what happened and what to do. It never holds a password, a token or an internal detail.
public struct Failure: Error, Sendable, Equatable {
    public struct Entry: Sendable, Equatable {
        public var key: String
        public var value: String

        public init(_ key: String, _ value: String) {
            self.key = key
            self.value = value
        }
    }

    /// A field of the request and what is wrong with it (google.rpc.BadRequest).
    public struct FieldViolation: Sendable, Equatable {
        public var field: String
        public var description: String

        public init(field: String, description: String) {
            self.field = field
            self.description = description
        }
    }

    /// A message that a tenant's administrator wrote for its users (google.rpc.LocalizedMessage and Help).
    public struct Guidance: Sendable, Equatable {
        public var locale: String
        public var message: String
        public var url: String

        public init(locale: String, message: String, url: String) {
            self.locale = locale
            self.message = message
            self.url = url
        }
    }

    /// The data that a refusal rests on. It decides whether a node of a cluster may refuse without asking for the
    /// newest state. It is not sent to the caller.
    package enum Ground: Sendable {
        /// The rows of the store, which other nodes change.
        case state
        /// A key that this node does not know, and another node may have made. Anybody can name such a key.
        case unknownKey
        /// The number of calls of strangers. The node is well, and answers others.
        case strangers
        /// The request and what never changes: no node answers otherwise.
        case request
        /// The same and the clock: no node answers otherwise whose clock is right.
        case clock
    }

    public var code: StatusCode
    public var reason: String
    public var message: String
    public var metadata: [Entry]
    public var violations: [FieldViolation]
    public var retryAfter: Duration?
    public var guidance: Guidance?
    package var ground = Ground.state

    /// `code` is for a reason that comes with more than one status. Without `code`, the reason's usual status is used.
    public init(
        _ reason: Reason, as code: StatusCode? = nil, _ message: String, metadata: [Entry] = [],
        violations: [FieldViolation] = [], retryAfter: Duration? = nil, guidance: Guidance? = nil
    ) {
        self.code = code ?? reason.status
        self.reason = reason.name
        self.message = message
        self.metadata = metadata
        self.violations = violations
        self.retryAfter = retryAfter
        self.guidance = guidance
    }

    /// A failure that a peer reported. Its reason may be newer than this library.
    public init(received code: StatusCode, reason: String, _ message: String) {
        self.code = code
        self.reason = reason
        self.message = message
        metadata = []
        violations = []
    }

    /// A failure about one field of the request. The reason's status is INVALID_ARGUMENT.
    public static func invalid(_ reason: Reason, field: String, _ description: String) -> Failure {
        Failure(
            reason, "\(field): \(description)",
            violations: [FieldViolation(field: field, description: description)])
    }

    /// Whether the reason is one of these.
    public func `is`(_ reasons: Reason...) -> Bool { reasons.contains { $0.name == reason } }

    /// The `Reason` of this name, or nil if only a newer server knows it.
    public var knownReason: Reason? { Reason(name: reason) }

    /// The same failure with another ground.
    package func resting(on ground: Ground) -> Failure {
        var copy = self
        copy.ground = ground
        return copy
    }

    public func with(_ key: String, _ value: String) -> Failure {
        var copy = self
        copy.metadata.append(Entry(key, value))
        return copy
    }
}
