/// Reads the top-level fields of an encoded message one by one, without decoding it.
///
/// For bytes that need no schema: a field copied out of a stored record, an envelope on the hot path. It refuses
/// malformed bytes, but checks neither duplicates nor text: that is for the caller, or for decoding.
public struct FieldReader {
    public enum Value {
        case varint(UInt64)
        case fixed64(UInt64)
        case fixed32(UInt32)
        /// Points into the bytes being read.
        case bytes(UnsafeRawBufferPointer)
    }

    public struct Field {
        public let number: Int
        public let value: Value
    }

    private var cursor: WireCursor

    /// `bytes` must stay valid while the reader and its fields are in use.
    public init(_ bytes: UnsafeRawBufferPointer) {
        cursor = WireCursor(bytes)
    }

    /// Nil at the end; throws `malformed` for bytes that are not a message.
    @inline(__always)
    public mutating func next() throws(DecodeError) -> Field? {
        guard !cursor.isAtEnd else { return nil }
        let (number, wireType) = try cursor.tag()
        switch wireType {
        case 0: return Field(number: Int(number), value: .varint(try cursor.varint()))
        case 1:
            let bits = try cursor.take(8).bytes.loadUnaligned(as: UInt64.self)
            return Field(number: Int(number), value: .fixed64(UInt64(littleEndian: bits)))
        case 2: return Field(number: Int(number), value: .bytes(try cursor.lengthDelimited().bytes))
        case 5:
            let bits = try cursor.take(4).bytes.loadUnaligned(as: UInt32.self)
            return Field(number: Int(number), value: .fixed32(UInt32(littleEndian: bits)))
        default: throw .malformed
        }
    }
}

/// The content of the first length-delimited field `number` of an encoded message; nil when there is none or the bytes
/// before it are malformed. Points into `bytes`.
public func firstField(_ number: Int, in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    var reader = FieldReader(bytes)
    while let field = try? reader.next() {
        if field.number == number, case .bytes(let content) = field.value { return content }
    }
    return nil
}

/// The value of the first varint field `number` of an encoded message; nil when there is none, because the field has
/// its default, or when the bytes before it are malformed.
public func firstVarint(_ number: Int, in bytes: UnsafeRawBufferPointer) -> UInt64? {
    var reader = FieldReader(bytes)
    while let field = try? reader.next() {
        if field.number == number, case .varint(let value) = field.value { return value }
    }
    return nil
}
