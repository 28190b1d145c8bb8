// `postern.wire.v1.WireResponse` read in place, as a client does with a RESPONSE frame.

public import Base
import Messages

/// The payload of a RESPONSE frame; a view like `RequestEnvelope`, held to the same rules.
public struct ResponseEnvelope {
    private typealias Fields = WireResponse.FieldNumber

    /// The bytes of a google.rpc.Status; nil (as ttrpc's servers send it) or code 0 is OK.
    public let status: UnsafeRawBufferPointer?
    /// The response message's bytes.
    public let payload: UnsafeRawBufferPointer
    public let metadata: Metadata

    public init(reading bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(EnvelopeError) {
        var reader = FieldReader(bytes)
        var status: UnsafeRawBufferPointer?
        var payload = UnsafeRawBufferPointer(rebasing: bytes[..<0])
        var metadata = Metadata(in: bytes, field: Fields.metadata)
        var seen = SingularFields()
        var unknownFields = 0
        while let field = try reader.nextField() {
            switch (field.number, field.value) {
            case (Fields.status, .bytes(let content)):
                try seen.insert(field.number, .status)
                status = content
            case (Fields.payload, .bytes(let content)):
                try seen.insert(field.number, .payload)
                payload = content
            case (Fields.metadata, .bytes(let content)):
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
        case Fields.status: .status
        case Fields.payload: .payload
        case Fields.metadata: .metadata
        default: nil
        }
    }
}
