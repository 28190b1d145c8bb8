import Base
import Messages
import Wire

/// A REQUEST that is encoded once. Each use has its own stream id, its own tenant number, and one number more.
struct FrameTemplate {
    /// Stands in the place of the number. It occurs in no name, no token and no length.
    static let placeholder = 9_999_999_999
    private static let streamOffset = 4

    private let bytes: [UInt8]
    private let numberOffset: Int?
    private let tenantOffset: Int?

    /// The number goes to where `request` holds `placeholder`'s digits.
    init(_ operation: Operation, _ request: some Message) {
        var buffer = ByteBuffer()
        buffer.appendRequest(stream: 0, service: operation.service, method: operation.method) {
            request.encode(into: &$0)
        }
        let bytes = buffer.copyBytes()
        self.bytes = bytes
        numberOffset = Self.offset(of: [UInt8](String(Self.placeholder).utf8), in: bytes)
        tenantOffset = Self.offset(of: Population.tenantPlaceholder, in: bytes)
    }

    private static func offset(of digits: [UInt8], in bytes: [UInt8]) -> Int? {
        bytes.indices.dropLast(digits.count - 1).last { bytes[$0..<$0 + digits.count].elementsEqual(digits) }
    }

    func append(stream: UInt32, number: Int = 0, tenant: Int = 0, to buffer: inout ByteBuffer) {
        let target = buffer.reserve(bytes.count)
        bytes.withUnsafeBytes { target.copyMemory(from: $0.baseAddress!, byteCount: bytes.count) }
        (target + Self.streamOffset).storeBytes(of: stream.bigEndian, as: UInt32.self)
        if let numberOffset { UserName.writeDigits(number, to: target + numberOffset) }
        if let tenantOffset { Population.writeDigits(ofTenant: tenant, to: target + tenantOffset) }
        buffer.commit(bytes.count)
    }
}
