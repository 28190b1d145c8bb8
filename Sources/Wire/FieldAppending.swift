// A protobuf field whose size is known only after it was written.

import Base
import Messages

extension ByteBuffer {
    /// A length-delimited field whose content `write` appends: one byte is kept for the length, and the content moves
    /// up by the few bytes a longer length needs. (A padded length would be an over-long varint, which we refuse
    /// ourselves.)
    mutating func appendField(_ number: Int, _ write: (inout ByteBuffer) throws -> Void) rethrows {
        appendTag(number, .lengthDelimited)
        append(0)
        let start = readableByteCount
        try write(&self)
        let byteCount = readableByteCount - start
        precondition(byteCount >= 0, "a field's writer took bytes away")
        let shift = varintByteCount(UInt64(byteCount)) - 1
        let content = reserve(shift) - byteCount
        if shift > 0 { (content + shift).copyMemory(from: content, byteCount: byteCount) }
        var writer = RawWriter(at: content - 1)
        writer.varint(UInt64(byteCount))
        commit(shift)
    }

    mutating func appendBytesField(_ number: Int, _ string: String) {
        var string = string
        string.withUTF8 { appendBytesField(number, UnsafeRawBufferPointer($0)) }
    }
}
