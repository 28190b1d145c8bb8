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

    /// A million zeros, compressed by gzip -n.
    private static let bomb: [UInt8] =
        [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc1, 0x31, 0x01, 0x00, 0x00,
            0x00, 0xc2, 0xa0, 0xf5, 0x4f, 0x6d, 0x08, 0x5f, 0xa0,
        ] + [UInt8](repeating: 0, count: 1016) + [
            0x3e, 0x03, 0x1c, 0xea, 0x38, 0xa7, 0x00, 0x00, 0x10, 0x00,
        ]
}
