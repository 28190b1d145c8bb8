public import Base
public import Messages

/// A message whose bytes a test put together, field by field.
public struct EncodedMessage: Message {
    public private(set) var bytes: [UInt8] = []

    public init() {}

    /// Starts with the fields of `message`.
    public init(_ message: some Message) { bytes = message.encoded() }

    public init(decoding bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(DecodeError) {
        self.bytes = [UInt8](bytes)
    }

    public mutating func append(_ number: Int, _ text: Text) {
        var buffer = ByteBuffer()
        buffer.appendTag(number, .lengthDelimited)
        buffer.appendVarint(UInt64(text.byteCount))
        buffer.append(contentsOf: text.bytes)
        bytes += buffer.copyBytes()
    }

    public mutating func append(_ number: Int, _ value: UInt64) {
        var buffer = ByteBuffer()
        buffer.appendTag(number, .varint)
        buffer.appendVarint(value)
        bytes += buffer.copyBytes()
    }

    /// The text of field `number`; empty when there is none.
    public func text(_ number: Int) -> Text {
        bytes.withUnsafeBytes { raw in
            Text(unchecked: firstField(number, in: raw).map { [UInt8]($0) } ?? [])
        }
    }

    /// The bytes of each message in the repeated field `number`.
    public func messages(_ number: Int) -> [[UInt8]] {
        bytes.withUnsafeBytes { raw in
            var found: [[UInt8]] = []
            var reader = FieldReader(raw)
            while let field = try? reader.next() {
                if field.number == number, case .bytes(let content) = field.value { found.append([UInt8](content)) }
            }
            return found
        }
    }

    public func encode(into buffer: inout ByteBuffer) { buffer.append(contentsOf: bytes) }

    public var encodedByteCount: Int { bytes.count }
}
