import Base
import Glibc
import Identity
import Messages
import Store
import Transport
import Wire

/// A method that can be called: what proto/ says, how its handler is run, what it did so far.
final class RegisteredMethod: Sendable {
    let descriptor: MethodDescriptor
    let body: MethodBody
    let metrics = MethodMetrics()
    let serviceBytes: [UInt8]
    let methodBytes: [UInt8]

    init(_ descriptor: MethodDescriptor, _ body: MethodBody) {
        self.descriptor = descriptor
        self.body = body
        self.serviceBytes = [UInt8](descriptor.service.utf8)
        self.methodBytes = [UInt8](descriptor.method.utf8)
    }

    /// Neither name is empty: `RequestEnvelope` refuses that.
    func matches(_ service: UnsafeRawBufferPointer, _ method: UnsafeRawBufferPointer) -> Bool {
        guard methodBytes.count == method.count, serviceBytes.count == service.count else { return false }
        return methodBytes.withUnsafeBytes { memcmp($0.baseAddress!, method.baseAddress!, $0.count) == 0 }
            && serviceBytes.withUnsafeBytes { memcmp($0.baseAddress!, service.baseAddress!, $0.count) == 0 }
    }
}

/// How the router runs a method; each closure knows its handler's types.
enum MethodBody: Sendable {
    case fast(@Sendable (_ exchange: borrowing FastExchange, _ connection: isolated Connection) throws -> Void)
    case page(@Sendable (_ payload: UnsafeRawBufferPointer, _ limits: Limits) throws -> PreparedPage)
    case slow(@Sendable (_ payload: UnsafeRawBufferPointer, _ limits: Limits) throws -> PreparedCall)
    case serverStream(@Sendable (_ payload: UnsafeRawBufferPointer, _ limits: Limits) throws -> PreparedStream)
    case bidirectional(@Sendable (_ payload: UnsafeRawBufferPointer, _ limits: Limits) throws -> PreparedStream)
}

/// A decoded request for a page of a list, ready to run.
struct PreparedPage: Sendable {
    let requestedTenantID: Text?
    /// Runs the handler and answers, while the transaction lasts.
    let answer:
        @Sendable (
            _ call: borrowing Call, _ transaction: borrowing ReadTransaction, _ place: AnswerPlace,
            _ connection: isolated Connection
        ) throws -> Void
}

/// Which call of a connection is answered.
struct AnswerPlace: Sendable {
    let stream: UInt32
    let requestID: Text
}

/// A decoded request of a slow method, ready to run.
struct PreparedCall: Sendable {
    let requestedTenantID: Text?
    let endUser: NamedEndUser
    let purpose: WritePurpose
    /// Runs the handler and returns the encoded response.
    let run: @Sendable (Call) async throws -> [UInt8]
}

/// A decoded first request of a stream, ready to run.
struct PreparedStream: Sendable {
    let requestedTenantID: Text?
    let run: @Sendable (Call, Connection, UInt32) async throws -> Void
}

/// All methods, found by the two names in a request.
struct Registry {
    private var methodsByHash: [UInt64: [RegisteredMethod]] = [:]
    private(set) var all: [RegisteredMethod] = []

    func method(_ service: UnsafeRawBufferPointer, _ method: UnsafeRawBufferPointer) -> RegisteredMethod? {
        methodsByHash[Self.hash(service, method)]?.first { $0.matches(service, method) }
    }

    mutating func register<M: FastMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        add(
            descriptor,
            .fast { exchange, connection in
                let request = try M.Request(decoding: exchange.payload, limits: exchange.limits)
                try exchange.answer(requestedTenantID: request.requestedTenantID, on: connection) {
                    call, transaction in try M.handle(request, call, transaction)
                }
            })
    }

    mutating func register<M: PageMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        add(
            descriptor,
            .page { payload, limits in
                let request = try M.Request(decoding: payload, limits: limits)
                return PreparedPage(requestedTenantID: request.requestedTenantID) {
                    call, transaction, place, connection in
                    let reply = try M.handle(request, call, transaction)
                    place.requestID.bytes.withUnsafeBytes { requestID in
                        connection.respond(
                            stream: place.stream, metadata: OutgoingMetadata(requestID: requestID)
                        ) { reply.encode(into: &$0) }
                    }
                }
            })
    }

    mutating func register<M: SlowMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        add(
            descriptor,
            .slow { payload, limits in
                let request = try M.Request(decoding: payload, limits: limits)
                return PreparedCall(
                    requestedTenantID: request.requestedTenantID, endUser: M.endUser(of: request),
                    purpose: M.purpose(of: request, descriptor)
                ) { call in
                    try await M.handle(request, call).encoded()
                }
            })
    }

    mutating func register<M: ServerStreamMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        add(
            descriptor,
            .serverStream { payload, limits in
                let request = try M.Request(decoding: payload, limits: limits)
                return PreparedStream(requestedTenantID: request.requestedTenantID) { call, connection, stream in
                    try await M.handle(request, call, ReplyStream(connection: connection, stream: stream))
                }
            })
    }

    mutating func register<M: BidirectionalMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        add(
            descriptor,
            .bidirectional { payload, limits in
                let first = try M.Request(decoding: payload, limits: limits)
                return PreparedStream(requestedTenantID: first.requestedTenantID) { call, connection, stream in
                    try await M.handle(
                        first, RequestStream(connection: connection, stream: stream, limits: limits), call,
                        ReplyStream(connection: connection, stream: stream))
                }
            })
    }

    private mutating func add(_ descriptor: MethodDescriptor, _ body: MethodBody) {
        let method = RegisteredMethod(descriptor, body)
        all.append(method)
        let hash = method.serviceBytes.withUnsafeBytes { service in
            method.methodBytes.withUnsafeBytes { Self.hash(service, $0) }
        }
        methodsByHash[hash, default: []].append(method)
    }

    /// Only has to tell the names of this table apart quickly; equal bytes are checked behind it.
    private static func hash(_ service: UnsafeRawBufferPointer, _ method: UnsafeRawBufferPointer) -> UInt64 {
        func tail(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
            if bytes.count >= 8 { return bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self) }
            return bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        let length = UInt64(service.count) << 32 | UInt64(method.count)
        return tail(service) &* 0x9E37_79B9_7F4A_7C15 ^ tail(method) &* 0xC2B2_AE3D_27D4_EB4F ^ length
    }
}
