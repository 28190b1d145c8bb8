public import Base

/// A fault of an envelope. The stream gets the matching failure; the connection stays.
public enum EnvelopeError: Error, Equatable, Sendable {
    /// The fields of `Request`, `Response` and `KeyValue`, as the proto file names them.
    public enum Field: String, Sendable {
        case service, method, payload
        case timeout = "timeout_nano"
        case metadata, key, value, status
    }

    /// Ends in the middle, over-long varint, length past the end, field number 0, groups, wire types 6 and 7.
    case malformed
    case wrongWireType(Field)
    /// A singular field, or one of the six metadata keys Postern reads, occurs again: layers could see different ones.
    case duplicate(Field)
    case missing(Field)
    /// A number that cannot be below zero.
    case negative(Field)
    /// Not well-formed UTF-8, a NUL in it, or a metadata key that is not [0-9a-z_.-]+.
    case text(Field)
    case tooManyUnknownFields
    /// A `grpc-timeout` that is not a timeout.
    case malformedTimeout
    /// More entries or bytes than `Limits` allows.
    case metadataTooLarge

    public var failure: Failure {
        switch self {
        case .malformed:
            Failure(.malformedEnvelope, "The frame's payload is no well-formed protobuf message.")
        case .wrongWireType(let field):
            .invalid(.malformedEnvelope, field: field.rawValue, "has another type in the protocol's definition")
        case .duplicate(let field):
            .invalid(.malformedEnvelope, field: field.rawValue, "must not occur twice")
        case .missing(let field):
            .invalid(.malformedEnvelope, field: field.rawValue, "is needed")
        case .negative(let field):
            .invalid(.malformedEnvelope, field: field.rawValue, "must not be negative")
        case .text(let field):
            .invalid(.malformedEnvelope, field: field.rawValue, Self.textRule(field))
        case .tooManyUnknownFields:
            Failure(
                .malformedEnvelope, "The envelope has too many fields this version does not know.")
        case .malformedTimeout:
            .invalid(.malformedEnvelope, field: "grpc-timeout", "is at most 8 digits and one of H, M, S, m, u, n")
        case .metadataTooLarge:
            Failure(.metadataTooLarge, "Send fewer or shorter metadata entries.")
        }
    }

    private static func textRule(_ field: Field) -> String {
        field == .key ? "must be one or more of 0-9 a-z _ . -" : "must be UTF-8 without NUL"
    }
}
