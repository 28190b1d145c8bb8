import Base
import Wire

/// The kept header fields of one request: those that describe the call, and the metadata that Postern reads.
///
/// The values are copied to one buffer, whose memory the next request on the connection uses again.
struct GRPCRequestHeaders: ~Copyable {
    enum Method { case post, get, head, other }
    /// How messages with the compressed flag are compressed.
    enum Encoding { case identity, gzip, unknown }

    private var text = ByteBuffer()
    private var path: Range<Int>?
    private var authorizationRange: Range<Int>?
    private var traceparentRange: Range<Int>?
    private var requestIDRange: Range<Int>?
    private var idempotencyKeyRange: Range<Int>?
    private var positionRange: Range<Int>?
    private var consistencyRange: Range<Int>?
    private var fieldsByteCount = 0
    private var metadataByteCount = 0
    private var metadataCount = 0

    private(set) var method = Method.other
    private(set) var isGRPC = false
    private(set) var encoding = Encoding.identity
    /// 0: the client named none.
    private(set) var timeoutNanoseconds: Int64 = 0
    /// The first fault of the fields.
    private(set) var fault: EnvelopeError?

    init() {}

    /// The memory of the values.
    var capacity: Int { text.capacity }

    /// Removes all fields. Keeps the memory unless it is much: an idle connection keeps that of many requests.
    mutating func clear() {
        text.consume(text.readableByteCount)
        text.releaseIfIdle(above: 1_024)
        (path, authorizationRange, traceparentRange, requestIDRange, idempotencyKeyRange) = (nil, nil, nil, nil, nil)
        (positionRange, consistencyRange) = (nil, nil)
        (fieldsByteCount, metadataByteCount, metadataCount) = (0, 0, 0)
        (method, isGRPC, encoding, timeoutNanoseconds, fault) = (.other, false, .identity, 0, nil)
    }

    /// Whether the request is a plain HTTP request for a page (GET or HEAD), and not a call.
    var asksForPage: Bool { method == .get || method == .head }
    var authorization: UnsafeRawBufferPointer? { value(authorizationRange) }
    var requestID: UnsafeRawBufferPointer? { value(requestIDRange) }

    var metadata: Metadata {
        Metadata(
            authorization: authorization, traceparent: value(traceparentRange), requestID: requestID,
            idempotencyKey: value(idempotencyKeyRange), position: value(positionRange),
            consistency: value(consistencyRange))
    }

    /// The path: `/service/method`, or another one.
    var wholePath: UnsafeRawBufferPointer { value(path) ?? UnsafeRawBufferPointer(start: nil, count: 0) }

    /// The two names in the path; nil for a path that is not of this form.
    var names: (service: UnsafeRawBufferPointer, method: UnsafeRawBufferPointer)? {
        let path = wholePath
        guard path.first == UInt8(ascii: "/"), let end = path.lastIndex(of: UInt8(ascii: "/")), end > 1,
            end + 1 < path.count, UTF8Validation.isText(path)
        else { return nil }
        return (UnsafeRawBufferPointer(rebasing: path[1..<end]), UnsafeRawBufferPointer(rebasing: path[(end + 1)...]))
    }

    private func value(_ range: Range<Int>?) -> UnsafeRawBufferPointer? {
        range.map { UnsafeRawBufferPointer(rebasing: text.readable[$0]) }
    }

    // MARK: Fields

    /// Takes one field in. Names are in lower case, and values without control characters: HTTP/2 has no others.
    mutating func add(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, limits: Limits) {
        fieldsByteCount += name.count + value.count + 32
        guard fieldsByteCount <= limits.headerListMax else { return note(.metadataTooLarge) }
        do throws(EnvelopeError) {
            if try !addTransportField(name, value) { try addMetadata(name, value, limits) }
        } catch {
            note(error)
        }
    }

    private mutating func note(_ error: EnvelopeError) {
        if fault == nil { fault = error }
    }

    /// Takes in a field of HTTP/2 or of gRPC itself. Returns false for a field that is metadata.
    private mutating func addTransportField(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) throws(EnvelopeError) -> Bool {
        switch name.count {
        case 2 where name.equals("te"): return true
        case 5 where name.equals(":path"): path = keep(value)
        case 7 where name.equals(":method"):
            method = value.equals("POST") ? .post : value.equals("GET") ? .get : value.equals("HEAD") ? .head : .other
        case 10 where name.equals("user-agent"): return true
        case 12 where name.equals("content-type"): isGRPC = Self.isGRPC(value)
        case 12 where name.equals("grpc-timeout"):
            guard let timeout = GRPCTimeout.nanoseconds(value) else { throw .malformedTimeout }
            timeoutNanoseconds = timeout
        case 13 where name.equals("grpc-encoding"):
            encoding = value.equals("gzip") ? .gzip : value.equals("identity") ? .identity : .unknown
        default: return name.first == UInt8(ascii: ":") || name.starts(with: "grpc-".utf8)
        }
        return true
    }

    private mutating func addMetadata(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ limits: Limits
    ) throws(EnvelopeError) {
        metadataCount += 1
        metadataByteCount += name.count + value.count + 32
        guard metadataCount <= limits.messages.metadataEntriesMax, metadataByteCount <= limits.messages.metadataMax
        else {
            throw .metadataTooLarge
        }
        switch name.count {
        case 11 where name.equals("traceparent"): traceparentRange = try keepOnce(value, after: traceparentRange)
        case 12 where name.equals("x-request-id"): requestIDRange = try keepOnce(value, after: requestIDRange)
        case 13 where name.equals("authorization"): authorizationRange = try keepOnce(value, after: authorizationRange)
        case 15 where name.equals("idempotency-key"):
            idempotencyKeyRange = try keepOnce(value, after: idempotencyKeyRange)
        case 18 where name.equals("x-postern-position"): positionRange = try keepOnce(value, after: positionRange)
        case 21 where name.equals("x-postern-consistency"):
            consistencyRange = try keepOnce(value, after: consistencyRange)
        default: break
        }
    }

    private mutating func keepOnce(
        _ value: UnsafeRawBufferPointer, after earlier: Range<Int>?
    ) throws(EnvelopeError) -> Range<Int> {
        guard earlier == nil else { throw .duplicate(.metadata) }
        guard UTF8Validation.isText(value) else { throw .text(.value) }
        return keep(value)
    }

    private mutating func keep(_ value: UnsafeRawBufferPointer) -> Range<Int> {
        let start = text.readableByteCount
        text.append(contentsOf: value)
        return start..<text.readableByteCount
    }

    /// `application/grpc`, also with `+proto` and with parameters.
    private static func isGRPC(_ value: UnsafeRawBufferPointer) -> Bool {
        let type = UnsafeRawBufferPointer(rebasing: value.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") })
        return type.equals("application/grpc") || type.equals("application/grpc+proto")
    }
}

extension UnsafeRawBufferPointer {
    func equals(_ text: StaticString) -> Bool { hasSameBytes(as: text.bytes) }
}
