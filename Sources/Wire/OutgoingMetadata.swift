// The metadata of frames that are sent.

public import Base
import Messages

/// The metadata of an envelope that is written: the known keys as borrowed slices, other keys as owned text.
///
/// The slices must stay valid until the call that writes them returns. Without `others` nothing is allocated.
public struct OutgoingMetadata {
    public struct Entry: Sendable, Equatable {
        /// [0-9a-z_.-]+
        public var key: Text
        public var value: Text

        public init(key: Text, value: Text) {
            self.key = key
            self.value = value
        }
    }

    public var authorization: UnsafeRawBufferPointer?
    public var traceparent: UnsafeRawBufferPointer?
    public var requestID: UnsafeRawBufferPointer?
    public var idempotencyKey: UnsafeRawBufferPointer?
    /// `x-postern-position`: the position of an answer, or of a caller, in a cluster's journal.
    public var position: UnsafeRawBufferPointer?
    public var others: [Entry]

    public init(
        authorization: UnsafeRawBufferPointer? = nil, traceparent: UnsafeRawBufferPointer? = nil,
        requestID: UnsafeRawBufferPointer? = nil, idempotencyKey: UnsafeRawBufferPointer? = nil,
        position: UnsafeRawBufferPointer? = nil, others: [Entry] = []
    ) {
        self.authorization = authorization
        self.traceparent = traceparent
        self.requestID = requestID
        self.idempotencyKey = idempotencyKey
        self.position = position
        self.others = others
    }

    /// Bytes of all entries as fields with a one-byte tag.
    var byteCount: Int {
        var total = 0
        if let requestID { total += Self.fieldByteCount(12, requestID.count) }
        if let authorization { total += Self.fieldByteCount(13, authorization.count) }
        if let traceparent { total += Self.fieldByteCount(11, traceparent.count) }
        if let idempotencyKey { total += Self.fieldByteCount(15, idempotencyKey.count) }
        if let position { total += Self.fieldByteCount(18, position.count) }
        for entry in others { total += Self.fieldByteCount(entry.key.byteCount, entry.value.byteCount) }
        return total
    }

    func write(field number: Int, to writer: inout RawWriter) {
        if let requestID { Self.write(number, "x-request-id", requestID, to: &writer) }
        if let authorization { Self.write(number, "authorization", authorization, to: &writer) }
        if let traceparent { Self.write(number, "traceparent", traceparent, to: &writer) }
        if let idempotencyKey { Self.write(number, "idempotency-key", idempotencyKey, to: &writer) }
        if let position { Self.write(number, "x-postern-position", position, to: &writer) }
        for entry in others {
            entry.key.bytes.withUnsafeBytes { key in
                entry.value.bytes.withUnsafeBytes { value in Self.write(number, key, value, to: &writer) }
            }
        }
    }

    private static func write(
        _ number: Int, _ key: StaticString, _ value: UnsafeRawBufferPointer, to writer: inout RawWriter
    ) {
        write(number, UnsafeRawBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount), value, to: &writer)
    }

    private static func write(
        _ number: Int, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, to writer: inout RawWriter
    ) {
        writer.tag(number)
        writer.varint(UInt64(RawWriter.fieldByteCount(key.count) + RawWriter.fieldByteCount(value.count)))
        writer.lengthDelimited(WireKeyValue.FieldNumber.key, key)
        writer.lengthDelimited(WireKeyValue.FieldNumber.value, value)
    }

    private static func fieldByteCount(_ keyByteCount: Int, _ valueByteCount: Int) -> Int {
        RawWriter.fieldByteCount(
            RawWriter.fieldByteCount(keyByteCount) + RawWriter.fieldByteCount(valueByteCount))
    }
}
