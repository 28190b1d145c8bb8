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

    // Computed: a stored constant would be looked up with each answer.
    private enum Key {
        static var requestID: StaticString { "x-request-id" }
        static var authorization: StaticString { "authorization" }
        static var traceparent: StaticString { "traceparent" }
        static var idempotencyKey: StaticString { "idempotency-key" }
        static var position: StaticString { "x-postern-position" }
    }

    /// The number of bytes that `write` writes: all entries as fields with a one-byte tag.
    var byteCount: Int {
        var total = 0
        if let requestID { total += Self.fieldByteCount(Key.requestID.utf8CodeUnitCount, requestID.count) }
        if let authorization { total += Self.fieldByteCount(Key.authorization.utf8CodeUnitCount, authorization.count) }
        if let traceparent { total += Self.fieldByteCount(Key.traceparent.utf8CodeUnitCount, traceparent.count) }
        if let idempotencyKey {
            total += Self.fieldByteCount(Key.idempotencyKey.utf8CodeUnitCount, idempotencyKey.count)
        }
        if let position { total += Self.fieldByteCount(Key.position.utf8CodeUnitCount, position.count) }
        for entry in others { total += Self.fieldByteCount(entry.key.byteCount, entry.value.byteCount) }
        return total
    }

    func write(field number: Int, to writer: inout RawWriter) {
        if let requestID { Self.write(number, Key.requestID.bytes, requestID, to: &writer) }
        if let authorization { Self.write(number, Key.authorization.bytes, authorization, to: &writer) }
        if let traceparent { Self.write(number, Key.traceparent.bytes, traceparent, to: &writer) }
        if let idempotencyKey { Self.write(number, Key.idempotencyKey.bytes, idempotencyKey, to: &writer) }
        if let position { Self.write(number, Key.position.bytes, position, to: &writer) }
        for entry in others {
            entry.key.bytes.withUnsafeBytes { key in
                entry.value.bytes.withUnsafeBytes { value in Self.write(number, key, value, to: &writer) }
            }
        }
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
