/// The error of a refused call: what every failed RPC carries.
///
/// `reason` is the stable key that clients switch on, in UPPER_SNAKE; it is Identity Toolkit's name where that has one.
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

    public var code: StatusCode
    public var reason: String
    public var message: String
    public var metadata: [Entry]
    public var violations: [FieldViolation]
    public var retryAfter: Duration?
    public var guidance: Guidance?

    public init(
        _ code: StatusCode, _ reason: String, _ message: String, metadata: [Entry] = [],
        violations: [FieldViolation] = [], retryAfter: Duration? = nil, guidance: Guidance? = nil
    ) {
        self.code = code
        self.reason = reason
        self.message = message
        self.metadata = metadata
        self.violations = violations
        self.retryAfter = retryAfter
        self.guidance = guidance
    }

    /// An INVALID_ARGUMENT about one field of the request.
    public static func invalid(_ reason: String, field: String, _ description: String) -> Failure {
        Failure(
            .invalidArgument, reason, "\(field): \(description)",
            violations: [FieldViolation(field: field, description: description)])
    }

    public func with(_ key: String, _ value: String) -> Failure {
        var copy = self
        copy.metadata.append(Entry(key, value))
        return copy
    }
}
