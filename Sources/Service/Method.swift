import Base
import Identity
import Messages
import Store

// How a method is written: a type named <Service><Method> that conforms to one of the five protocols below, in
// Handlers/<Service>/<Service><Method>.swift. The generated registry (Generated/Methods.swift) finds it by that name.

/// A method that only reads: runs to its end on the connection's event loop, in the read transaction it is given.
protocol FastMethod: SendableMetatype {
    associatedtype Request: Message
    associatedtype Response: Message
    static func handle(
        _ request: Request, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<Response>
}

/// A page of a list, or another answer that takes as long: a method that only reads, as a fast one does.
///
/// The page is made when the client has taken the earlier answers, and only one page is made in a turn of the loop, so
/// that the calls of others are answered between two pages. Such a call waits at the connection
/// (`Connection.pageTurn`).
protocol PageMethod: SendableMetatype {
    associatedtype Request: Message
    associatedtype Response: Message
    static func handle(
        _ request: Request, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<Response>
}

/// A method that waits: for a commit, a password hash, a signature.
protocol SlowMethod: SendableMetatype {
    associatedtype Request: Message
    associatedtype Response: Message
    static func handle(_ request: Request, _ call: Call) async throws -> Response
    /// The fields that name the end user of a request, so that a caller's end users can be told apart. By default none.
    static func endUser(of request: Request) -> NamedEndUser
    /// How much of a full store the request's writes may use. The default is `.relief` for methods that are
    /// `allowed_beyond_quota`, because they end, remove or restrict something. For other methods each write says so
    /// itself.
    static func purpose(of request: Request, _ rule: MethodDescriptor) -> WritePurpose
    /// Whether the handler's work for the request takes as long as a page. The handler then begins in a turn of its
    /// loop in which nothing else takes as long (`Connection.workTurn`). By default false.
    static func isLong(_ request: Request) -> Bool
}

extension SlowMethod {
    static func isLong(_ request: Request) -> Bool { false }
    static func endUser(of request: Request) -> NamedEndUser { NamedEndUser() }
    static func purpose(of request: Request, _ rule: MethodDescriptor) -> WritePurpose {
        rule.allowedBeyondQuota ? .relief : .growth
    }
}

/// One request, then messages until the handler returns.
protocol ServerStreamMethod: SendableMetatype {
    associatedtype Request: Message
    associatedtype Response: Message
    static func handle(_ request: Request, _ call: StreamCall, _ replies: ReplyStream<Response>) async throws
}

/// Messages both ways. The first message has passed the gate; the tenant of later ones is the first one's. The handler
/// keeps no message while it waits for the next one: only one counts as memory of the connection.
protocol BidirectionalMethod: SendableMetatype {
    associatedtype Request: Message
    associatedtype Response: Message
    static func handle(
        _ requests: RequestStream<Request>, _ call: StreamCall, _ replies: ReplyStream<Response>
    ) async throws
}

/// The answer of a method that only reads.
enum Reply<Response: Message> {
    case message(Response)
    /// The bytes of a response that was encoded before.
    case encoded([UInt8])
    /// A response with only this message field, whose bytes are sent as they lie in the database.
    case field(Int, UnsafeRawBufferPointer)
    /// A repeated message field, whose bytes are sent as they lie in the database, and the rest of the response.
    case list(Int, [UnsafeRawBufferPointer], Response)

    // Inlined, so that the response, a large value, is not copied on its way.
    @inline(__always)
    consuming func encode(into buffer: inout ByteBuffer) {
        switch consume self {
        case .message(let message): message.encode(into: &buffer)
        case .encoded(let bytes): bytes.withUnsafeBytes { buffer.append(contentsOf: $0) }
        case .field(let number, let bytes):
            buffer.appendTag(number, .lengthDelimited)
            buffer.appendVarint(UInt64(bytes.count))
            buffer.append(contentsOf: bytes)
        case .list(let number, let items, let rest):
            // Tag and length take six bytes at most. A buffer that grows step by step would become up to twice as
            // large.
            _ = buffer.reserve(items.reduce(Self.restByteCount) { $0 + $1.count + 6 })
            for item in items {
                buffer.appendTag(number, .lengthDelimited)
                buffer.appendVarint(UInt64(item.count))
                buffer.append(contentsOf: item)
            }
            rest.encode(into: &buffer)
        }
    }

    /// Room for a page token, and for the counts beside some lists.
    private static var restByteCount: Int { 1_024 }
}
