import Base
import Messages
import Wire

/// A REQUEST that is encoded once; only its stream id, and at most one number in it, differ from one use to the next.
struct FrameTemplate {
    /// Stands where the number goes: in no name, no token and no length.
    static let placeholder = 9_999_999_999
    private static let streamOffset = 4

    private let bytes: [UInt8]
    private let numberOffset: Int?

    /// The number goes to where `request` holds `placeholder`'s digits.
    init(_ operation: Operation, _ request: some Message) {
        var buffer = ByteBuffer()
        buffer.appendRequest(stream: 0, service: operation.service, method: operation.method) {
            request.encode(into: &$0)
        }
        let bytes = buffer.copyBytes()
        let digits = [UInt8](String(Self.placeholder).utf8)
        let offsets = bytes.indices.dropLast(digits.count - 1)
        self.bytes = bytes
        numberOffset = offsets.last { bytes[$0..<$0 + digits.count].elementsEqual(digits) }
    }

    func append(stream: UInt32, number: Int = 0, to buffer: inout ByteBuffer) {
        let target = buffer.reserve(bytes.count)
        bytes.withUnsafeBytes { target.copyMemory(from: $0.baseAddress!, byteCount: bytes.count) }
        (target + Self.streamOffset).storeBytes(of: stream.bigEndian, as: UInt32.self)
        if let numberOffset { UserName.writeDigits(number, to: target + numberOffset) }
        buffer.commit(bytes.count)
    }
}
