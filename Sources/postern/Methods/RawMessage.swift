import Base
import Messages

/// The bytes of a message whose type only the schema knows.
struct RawMessage: Message {
    var bytes: [UInt8] = []

    init() {}

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    init(decoding bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(DecodeError) {
        self.bytes = [UInt8](bytes)
    }

    func encode(into buffer: inout ByteBuffer) { bytes.withUnsafeBytes { buffer.append(contentsOf: $0) } }

    var encodedByteCount: Int { bytes.count }
}
