import Base
import Testing

@testable import HTTP2

@Suite struct GunzipTests {
    /// "postern postern postern", compressed by gzip -n.
    private static let packed: [UInt8] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x2b, 0xc8, 0x2f, 0x2e, 0x49, 0x2d,
        0xca, 0x53, 0x28, 0x40, 0xa5, 0x01, 0x96, 0xe8, 0x7b, 0x70, 0x17, 0x00, 0x00, 0x00,
    ]

    private func unpack(_ bytes: [UInt8], max: Int) throws -> [UInt8] {
        var output = ByteBuffer()
        try bytes.withUnsafeBytes { try Gunzip.unpack($0, into: &output, byteCountMax: max) }
        return output.copyBytes()
    }

    @Test func `What gzip packed comes out again, up to the bound and not beyond it`() throws {
        let content = [UInt8]("postern postern postern".utf8)
        #expect(try unpack(Self.packed, max: 1_000) == content)
        #expect(try unpack(Self.packed, max: content.count) == content)
        #expect(throws: Gunzip.GunzipError.tooLarge) { try unpack(Self.packed, max: content.count - 1) }
        #expect(throws: Gunzip.GunzipError.tooLarge) { try unpack(Self.packed, max: 0) }
    }

    @Test func `A bomb is given up at the bound`() {
        #expect(throws: Gunzip.GunzipError.tooLarge) { try unpack(Self.bomb, max: 64 * 1024) }
    }

    @Test func `What is not one whole gzip member is refused`() {
        #expect(throws: Gunzip.GunzipError.malformed) { try unpack([], max: 10) }
        #expect(throws: Gunzip.GunzipError.malformed) { try unpack([1, 2, 3, 4], max: 10) }
        for count in 1..<Self.packed.count {
            #expect(throws: Gunzip.GunzipError.malformed) { try unpack(Array(Self.packed[..<count]), max: 1_000) }
        }
        #expect(throws: Gunzip.GunzipError.malformed) { try unpack(Self.packed + [0], max: 1_000) }
        var wrong = Self.packed
        wrong[wrong.count - 6] ^= 1
        #expect(throws: Gunzip.GunzipError.malformed) { try unpack(wrong, max: 1_000) }
    }

    @Test func `Blocks that hold nothing or little are refused above a number`() throws {
        for empty in [Deflate.emptyWithCodes, Deflate.emptyWithFixedCodes] {
            var packed = Deflate()
            for index in 1...64 { packed.append(empty, isLast: index == 64) }
            let few = packed.gzip(of: [])
            #expect(try unpack(few, max: 10) == [])
            packed = Deflate()
            for index in 1...65 { packed.append(empty, isLast: index == 65) }
            let tooMany = packed.gzip(of: [])
            #expect(throws: Gunzip.GunzipError.malformed) { try unpack(tooMany, max: 10) }
        }
    }

    @Test func `The more content there is, the more blocks may hold it`() throws {
        for (blockByteCount, isTaken) in [(40, true), (20, false)] {
            let block = [UInt8](repeating: 7, count: blockByteCount)
            var packed = Deflate()
            for index in 1...1_000 { packed.append(stored: block, isLast: index == 1_000) }
            let content = [UInt8](repeating: 7, count: 1_000 * blockByteCount)
            let bytes = packed.gzip(of: content)
            if isTaken {
                #expect(try unpack(bytes, max: content.count) == content)
            } else {
                #expect(throws: Gunzip.GunzipError.malformed) { try unpack(bytes, max: content.count) }
            }
        }
        // 40 blocks more with codes of their own for 20 KiB.
        for (emptyCount, isTaken) in [(104, true), (105, false)] {
            let content = [UInt8](repeating: 7, count: 20 * 1_024)
            var packed = Deflate()
            packed.append(stored: content, isLast: false)
            for index in 1...emptyCount { packed.append(Deflate.emptyWithCodes, isLast: index == emptyCount) }
            let bytes = packed.gzip(of: content)
            if isTaken {
                #expect(try unpack(bytes, max: content.count) == content)
            } else {
                #expect(throws: Gunzip.GunzipError.malformed) { try unpack(bytes, max: content.count) }
            }
        }
    }

    /// A million zeros, compressed by gzip -n.
    private static let bomb: [UInt8] =
        [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc1, 0x31, 0x01, 0x00, 0x00,
            0x00, 0xc2, 0xa0, 0xf5, 0x4f, 0x6d, 0x08, 0x5f, 0xa0,
        ] + [UInt8](repeating: 0, count: 1016) + [
            0x3e, 0x03, 0x1c, 0xea, 0x38, 0xa7, 0x00, 0x00, 0x10, 0x00,
        ]
}

/// Writes deflated data (RFC 1951) block by block, as no compressor would.
private struct Deflate {
    typealias Bits = (value: Int, count: Int)

    /// The rest of an empty block with the fixed codes: its type and the code of its end.
    static let emptyWithFixedCodes: [Bits] = [(1, 2), (0, 7)]

    /// The rest of an empty block that describes codes of its own: one for the end, and one for a distance.
    static let emptyWithCodes: [Bits] = {
        var bits: [Bits] = [(2, 2), (0, 5), (0, 5), (14, 4)]
        let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1]
        let lengths: [Bits] = order.map { (value: $0 == 18 || $0 == 1 ? 1 : 0, count: 3) }
        // 256 symbols without a code in two runs; then one code of one bit each; then the block's end.
        let rest: [Bits] = [(1, 1), (138 - 11, 7), (1, 1), (118 - 11, 7), (0, 1), (0, 1), (0, 1)]
        bits += lengths
        bits += rest
        return bits
    }()

    private var bytes: [UInt8] = []
    private var bitCount = 0

    mutating func append(_ block: [Bits], isLast: Bool) {
        append((isLast ? 1 : 0, 1))
        for bits in block { append(bits) }
    }

    mutating func append(stored content: [UInt8], isLast: Bool) {
        append([(0, 2)], isLast: isLast)
        bitCount = bytes.count * 8
        for length in [content.count, ~content.count] {
            append((length & 0xFF, 8))
            append((length >> 8 & 0xFF, 8))
        }
        bytes += content
        bitCount = bytes.count * 8
    }

    private mutating func append(_ bits: Bits) {
        for place in 0..<bits.count {
            if bitCount % 8 == 0 { bytes.append(0) }
            if bits.value >> place & 1 == 1 { bytes[bytes.count - 1] |= 1 << UInt8(bitCount % 8) }
            bitCount += 1
        }
    }

    /// With the header and the trailer of gzip (RFC 1952).
    func gzip(of content: [UInt8]) -> [UInt8] {
        var sum = UInt32.max
        for byte in content {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
        var packed: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xFF] + bytes
        for value in [~sum, UInt32(content.count)] {
            for shift in [0, 8, 16, 24] { packed.append(UInt8(truncatingIfNeeded: value >> shift)) }
        }
        return packed
    }
}
