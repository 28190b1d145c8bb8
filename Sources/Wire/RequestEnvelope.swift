// `postern.wire.v1.WireRequest` read in place: one linear scan, slices instead of copies, no allocation. The scan is
// also the pre-scan: every rule that messages are held to before protobuf-c sees them is enforced here.

public import Base
import Messages

/// The payload of a REQUEST frame.
///
/// A view: every slice is valid only as long as the bytes it was read from (for a frame of the `FrameDecoder`: until
/// its next step). A task copies what it needs for longer.
public struct RequestEnvelope {
    private typealias Fields = WireRequest.FieldNumber

    /// Full name, such as `postern.v1.Tokens`; UTF-8 without NUL, not empty.
    public let service: UnsafeRawBufferPointer
    public let method: UnsafeRawBufferPointer
    /// The request message's bytes; not parsed.
    public let payload: UnsafeRawBufferPointer
    /// The caller's timeout, counted from now on; never negative. 0: the caller named none.
    public let timeoutNanoseconds: Int64
    public let metadata: Metadata

    /// A request of no method, for a session that has no request yet.
    public static var none: RequestEnvelope {
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        return RequestEnvelope(service: nothing, method: nothing, payload: nothing)
    }

    /// A request that came in another form than a REQUEST frame. `service` and `method` are UTF-8 without NUL.
    public init(
        service: UnsafeRawBufferPointer, method: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer,
        timeoutNanoseconds: Int64 = 0, metadata: Metadata = Metadata()
    ) {
        self.service = service
        self.method = method
        self.payload = payload
        self.timeoutNanoseconds = timeoutNanoseconds
        self.metadata = metadata
    }

    /// Throws what is wrong; `limits` gives `metadataMax`, `metadataEntriesMax` and `unknownFieldsMax`.
    public init(reading bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(EnvelopeError) {
        var reader = FieldReader(bytes)
        let nothing = UnsafeRawBufferPointer(rebasing: bytes[..<0])
        var service = nothing
        var method = nothing
        var payload = nothing
        var timeout: Int64 = 0
        var metadata = Metadata(in: bytes, field: Fields.metadata)
        var seen = SingularFields()
        var unknownFields = 0
        while let field = try reader.nextField() {
            switch (field.number, field.value) {
            case (Fields.service, .bytes(let content)):
                try seen.insert(field.number, .service)
                service = content
            case (Fields.method, .bytes(let content)):
                try seen.insert(field.number, .method)
                method = content
            case (Fields.payload, .bytes(let content)):
                try seen.insert(field.number, .payload)
                payload = content
            case (Fields.timeoutNano, .varint(let value)):
                try seen.insert(field.number, .timeout)
                timeout = Int64(bitPattern: value)
                guard timeout >= 0 else { throw .negative(.timeout) }
            case (Fields.metadata, .bytes(let content)):
                try metadata.note(content, limits: limits)
            default:
                if let known = Self.field(field.number) { throw .wrongWireType(known) }
                unknownFields += 1
                guard unknownFields <= limits.unknownFieldsMax else { throw .tooManyUnknownFields }
            }
        }
        guard !service.isEmpty else { throw .missing(.service) }
        guard !method.isEmpty else { throw .missing(.method) }
        guard UTF8Validation.isText(service) else { throw .text(.service) }
        guard UTF8Validation.isText(method) else { throw .text(.method) }
        self.service = service
        self.method = method
        self.payload = payload
        self.timeoutNanoseconds = timeout
        self.metadata = metadata
    }

    private static func field(_ number: Int) -> EnvelopeError.Field? {
        switch number {
        case Fields.service: .service
        case Fields.method: .method
        case Fields.payload: .payload
        case Fields.timeoutNano: .timeout
        case Fields.metadata: .metadata
        default: nil
        }
    }
}

/// The set of the envelope's singular fields that were read.
struct SingularFields {
    private var bits: UInt8 = 0

    @inline(__always)
    mutating func insert(_ number: Int, _ field: EnvelopeError.Field) throws(EnvelopeError) {
        guard bits & (1 << number) == 0 else { throw .duplicate(field) }
        bits |= 1 << number
    }
}

extension FieldReader {
    @inline(__always)
    mutating func nextField() throws(EnvelopeError) -> Field? {
        do throws(DecodeError) {
            return try next()
        } catch {
            throw .malformed
        }
    }
}
