public import Base

/// One HTTP request and the limits of its answer.
public struct HTTPRequest: Sendable {
    public enum Method: Sendable {
        case get
        /// The body's type is given as a field; the body is wiped after use.
        case post(Secret)
    }

    /// A header field. The value may come from outside: if it cannot be sent, the request is `malformedRequest`.
    public struct Field: Sendable {
        public var name: StaticString
        public var value: Text

        public init(_ name: StaticString, _ value: Text) {
            self.name = name
            self.value = value
        }
    }

    public var url: HTTPURL
    public var method: Method
    public var fields: [Field]
    public var policy: NetworkPolicy
    /// The longest time for looking up the name, and again for connecting.
    public var connectTimeout = Duration.seconds(3)
    /// The longest time of the request, from looking up the name to the end of the answer. Waiting for a thread does
    /// not count.
    public var timeout = Duration.seconds(5)
    /// The largest body. A larger body ends the transfer while it arrives.
    public var bodyByteCountMax = 256 * 1024
    /// Whether the body of an answer matters. Where it does not, a status of success is the whole answer: its body may
    /// be too long, too slow or cut off, and is left out.
    public var isBodyNeeded = true
    /// Whether an answer whose body is too long, too slow or cut off is returned all the same, with its status and
    /// `bodyError`. Without this, such an answer is an error like a server that cannot be reached. A redirection stays
    /// an error.
    public var keepsStatus = false

    public init(_ url: HTTPURL, method: Method = .get, fields: [Field] = [], policy: NetworkPolicy) {
        self.url = url
        self.method = method
        self.fields = fields
        self.policy = policy
    }

    /// A request with a form, as OAuth 2.0's endpoints take it.
    public static func form(
        _ url: HTTPURL, _ members: [(name: Text, value: Secret)], fields: [Field] = [], policy: NetworkPolicy
    ) -> HTTPRequest {
        var body: [UInt8] = []
        for member in members {
            if !body.isEmpty { body.append(UInt8(ascii: "&")) }
            body += PercentEncoding.encode(member.name)
            body.append(UInt8(ascii: "="))
            body += member.value.withBytes { PercentEncoding.encode([UInt8]($0)) }
        }
        let type = Field("Content-Type", "application/x-www-form-urlencoded")
        return HTTPRequest(url, method: .post(Secret(body)), fields: fields + [type], policy: policy)
    }
}

/// An answer of any status except a redirection.
public struct HTTPAnswer: Sendable {
    public var status: Int
    /// `Content-Type` without parameters, in lower case; empty if there is none.
    public var contentType: Text
    /// The `max-age` of Cache-Control; zero for no-store and no-cache, nil if the answer states none.
    public var maxAge: Duration?
    public var body: [UInt8]
    /// The reason why the whole body did not come, if the request `keepsStatus`. The body is then empty.
    public var bodyError: OutboundError?

    public init(status: Int, contentType: Text = .empty, maxAge: Duration? = nil, body: [UInt8] = []) {
        self.status = status
        self.contentType = contentType
        self.maxAge = maxAge
        self.body = body
    }

    public var isSuccess: Bool { (200...299).contains(status) }
}
