import Base
import Glibc
import Identity
import Messages
import Store
import Transport
import Wire

/// A method that can be called: its descriptor from proto/, the way its handler is run, and its metrics.
final class RegisteredMethod: Sendable {
    let descriptor: MethodDescriptor
    let body: MethodBody
    /// How a client has to open a call of this method.
    let kind: StreamKind
    let metrics = MethodMetrics()
    let serviceBytes: [UInt8]
    let methodBytes: [UInt8]

    init(_ descriptor: MethodDescriptor, _ body: MethodBody) {
        self.descriptor = descriptor
        self.body = body
        self.kind = if case .waiting(.stream(let kind, _)) = body { kind } else { .unary }
        self.serviceBytes = [UInt8](descriptor.service.utf8)
        self.methodBytes = [UInt8](descriptor.method.utf8)
    }

    /// No registered name is empty, so names of the same length are not empty either.
    func matches(_ service: UnsafeRawBufferPointer, _ method: UnsafeRawBufferPointer) -> Bool {
        guard methodBytes.count == method.count, serviceBytes.count == service.count else { return false }
        return methodBytes.withUnsafeBytes { memcmp($0.baseAddress!, method.baseAddress!, $0.count) == 0 }
            && serviceBytes.withUnsafeBytes { memcmp($0.baseAddress!, service.baseAddress!, $0.count) == 0 }
    }
}

/// How the router runs a method. Each closure knows its handler's types, but not the carrier of the call.
enum MethodBody: Sendable {
    /// Answers at once: appends the response message to the output, or throws.
    case fast(FastBody)
    case waiting(WaitingBody)
}

typealias FastBody =
    @Sendable (
        _ payload: UnsafeRawBufferPointer, _ method: MethodDescriptor, _ exchange: borrowing ReadExchange,
        _ output: inout ByteBuffer
    ) throws -> Void

/// How the router runs a method that does not answer in the turn in which its request came in. The request is decoded
/// at once.
enum WaitingBody: Sendable {
    case page(@Sendable (_ payload: UnsafeRawBufferPointer, _ limits: MessageLimits) throws -> PreparedPage)
    case change(@Sendable (_ payload: UnsafeRawBufferPointer, _ limits: MessageLimits) throws -> PreparedChange)
    case stream(StreamKind, PrepareStream)
}

typealias PrepareStream =
    @Sendable (_ payload: UnsafeRawBufferPointer, _ limits: MessageLimits) throws -> PreparedStream

/// A decoded request for a page of a list.
struct PreparedPage: Sendable {
    let requestedTenantID: Text?
    /// The memory of the decoded request.
    let memoryByteCount: Int
    /// Appends the response message, while the transaction lasts.
    let answer:
        @Sendable (
            _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction, _ output: inout ByteBuffer
        ) throws -> Void
}

/// A decoded first request of a stream.
struct PreparedStream: Sendable {
    typealias Run = @Sendable (StreamCall, CallStream) async throws -> Void

    let requestedTenantID: Text?
    /// The memory of the decoded request, if the stream keeps it.
    let memoryByteCount: Int
    let run: Run
}

/// All methods, found by the two names in a request.
struct Registry {
    /// Indexes of `all`.
    private var placesByHash: [UInt64: [Int]] = [:]
    private(set) var all: [RegisteredMethod] = []
    /// The methods of `all`, to be lent without counts of references.
    private var borrowed: [Unmanaged<RegisteredMethod>] = []

    /// The place in `all` of the method of these names, or nil. The search begins at `last`.
    func place(of service: UnsafeRawBufferPointer, _ method: UnsafeRawBufferPointer, last: Int) -> Int? {
        if last < borrowed.count, borrowed[last]._withUnsafeGuaranteedRef({ $0.matches(service, method) }) {
            return last
        }
        return placesByHash[Self.hash(service, method)]?.first { all[$0].matches(service, method) }
    }

    /// Lends `body` the method at this place. The registry holds it; a method that is taken out of `all` counts a
    /// reference with every call.
    func withMethod<Result>(at place: Int, _ body: (RegisteredMethod) -> Result) -> Result {
        borrowed[place]._withUnsafeGuaranteedRef(body)
    }

    mutating func register<M: FastMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        add(
            descriptor,
            .fast { payload, method, exchange, output in
                let request = try M.Request(decoding: payload, limits: exchange.limits)
                try exchange.read(method, requestedTenantID: request.requestedTenantID) { call, transaction in
                    try M.handle(request, call, transaction).encode(into: &output)
                }
            })
    }

    mutating func register<M: PageMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        add(
            descriptor,
            .waiting(
                .page { payload, limits in
                    let request = try M.Request(decoding: payload, limits: limits)
                    return PreparedPage(
                        requestedTenantID: request.requestedTenantID,
                        memoryByteCount: M.Request.memoryByteCount(decoding: payload)
                    ) { call, transaction, output in
                        try M.handle(request, call, transaction).encode(into: &output)
                    }
                }))
    }

    mutating func register<M: SlowMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        add(
            descriptor,
            .waiting(
                .change { payload, limits in
                    let request = try M.Request(decoding: payload, limits: limits)
                    return PreparedChange(
                        requestedTenantID: request.requestedTenantID, endUser: M.endUser(of: request),
                        purpose: M.purpose(of: request, descriptor), isLong: M.isLong(request),
                        memoryByteCount: M.Request.memoryByteCount(decoding: payload)
                    ) { call in
                        try await M.handle(request, call).encoded()
                    }
                }))
    }

    mutating func register<M: ServerStreamMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        addStream(descriptor, .remoteClosed) { (request: M.Request, _, _) in
            { call, stream in try await M.handle(request, call, ReplyStream(stream)) }
        }
    }

    mutating func register<M: BidirectionalMethod>(_ type: M.Type, _ descriptor: MethodDescriptor) {
        addStream(descriptor, .remoteOpen) { (_: M.Request, payload, limits) in
            let first = FirstMessage(payload)
            return { call, stream in
                try await M.handle(RequestStream(stream, first, limits: limits), call, ReplyStream(stream))
            }
        }
    }

    private mutating func addStream<Request: Message>(
        _ descriptor: MethodDescriptor, _ kind: StreamKind,
        _ handler: @escaping @Sendable (Request, UnsafeRawBufferPointer, MessageLimits) -> PreparedStream.Run
    ) {
        add(
            descriptor,
            .waiting(
                .stream(kind) { payload, limits in
                    let request = try Request(decoding: payload, limits: limits)
                    // A stream with messages both ways keeps the bytes of the first one, which its carrier counts.
                    return PreparedStream(
                        requestedTenantID: request.requestedTenantID,
                        memoryByteCount: kind == .remoteOpen ? 0 : Request.memoryByteCount(decoding: payload),
                        run: handler(request, payload, limits))
                }))
    }

    /// Lets a registered method also answer for a method of the same name of another service.
    mutating func alias(_ descriptor: MethodDescriptor, service: String) {
        guard let method = all.first(where: { $0.descriptor === descriptor }) else { return }
        add(MethodDescriptor(service: service, as: descriptor), method.body)
    }

    private mutating func add(_ descriptor: MethodDescriptor, _ body: MethodBody) {
        let method = RegisteredMethod(descriptor, body)
        let hash = method.serviceBytes.withUnsafeBytes { service in
            method.methodBytes.withUnsafeBytes { Self.hash(service, $0) }
        }
        placesByHash[hash, default: []].append(all.count)
        all.append(method)
        borrowed.append(.passUnretained(method))
    }

    /// The hash only has to tell the names of this table apart quickly; the bytes are compared afterwards.
    private static func hash(_ service: UnsafeRawBufferPointer, _ method: UnsafeRawBufferPointer) -> UInt64 {
        func tail(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
            if bytes.count >= 8 { return bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self) }
            return bytes.bigEndianNumber
        }
        let length = UInt64(service.count) << 32 | UInt64(method.count)
        return tail(service) &* 0x9E37_79B9_7F4A_7C15 ^ tail(method) &* 0xC2B2_AE3D_27D4_EB4F ^ length
    }
}
