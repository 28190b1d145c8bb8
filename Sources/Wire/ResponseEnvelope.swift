// `postern.wire.v1.WireResponse` read where it lies; what a client does with a RESPONSE frame.

public import Base
import Messages

/// The payload of a RESPONSE frame; a view like `RequestEnvelope`, held to the same rules.
public struct ResponseEnvelope {
    /// The bytes of a google.rpc.Status; nil (as ttrpc's servers send it) or code 0 is OK.
    public let status: UnsafeRawBufferPointer?
    /// The response message's bytes.
    public let payload: UnsafeRawBufferPointer
    public let metadata: Metadata

    public init(reading bytes: UnsafeRawBufferPointer, limits: Limits) throws(EnvelopeError) {
        var reader = FieldReader(bytes)
        var status: UnsafeRawBufferPointer?
        var payload = UnsafeRawBufferPointer(rebasing: bytes[..<0])
        var metadata = Metadata(in: bytes, field: 3)
        var seen = SingularFields()
        var unknownFields = 0
        while let field = try reader.nextField() {
            switch (field.number, field.value) {
            case (1, .bytes(let content)):
                try seen.insert(1, .status)
                status = content
            case (2, .bytes(let content)):
                try seen.insert(2, .payload)
                payload = content
            case (3, .bytes(let content)):
                try metadata.note(content, limits: limits)
            default:
                if let known = Self.field(field.number) { throw .wrongWireType(known) }
                unknownFields += 1
                guard unknownFields <= limits.unknownFieldsMax else { throw .tooManyUnknownFields }
            }
        }
        self.status = status
        self.payload = payload
        self.metadata = metadata
    }

    private static func field(_ number: Int) -> EnvelopeError.Field? {
        switch number {
        case 1: .status
        case 2: .payload
        case 3: .metadata
        default: nil
        }
    }
}
