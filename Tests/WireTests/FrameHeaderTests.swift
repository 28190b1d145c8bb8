import Base
import Testing
import Wire

@Suite struct FrameHeaderTests {
    @Test func `The ten bytes are those of ttrpc's protocol text`() throws {
        // A unary request of 0x010203 bytes on stream 5.
        let bytes: [UInt8] = [0x00, 0x01, 0x02, 0x03, 0x00, 0x00, 0x00, 0x05, 0x01, 0x00]
        let header = try #require(bytes.withUnsafeBytes { FrameHeader.read($0) })
        #expect(header == FrameHeader(payloadByteCount: 0x010203, stream: 5, type: .request))
        #expect(encoded(header) == bytes)
    }

    @Test func `Any header comes back as it was written`() {
        for (length, stream, type, flags) in [
            (UInt32.max, UInt32.max, UInt8.max, UInt8.max), (0, 0, 0, 0), (0x8000_0000, 0x7FFF_FFFF, 0x80, 0x05),
        ] {
            let header = FrameHeader(
                payloadByteCount: length, stream: stream, type: FrameType(rawValue: type),
                flags: FrameFlags(rawValue: flags))
            #expect(encoded(header).withUnsafeBytes { FrameHeader.read($0) } == header)
        }
    }

    @Test(arguments: 0..<10) func `Fewer than ten bytes are no header`(count: Int) {
        let bytes = [UInt8](repeating: 0, count: count)
        #expect(bytes.withUnsafeBytes { FrameHeader.read($0) } == nil)
    }

    @Test func `Types from 0x80 on are critical`() {
        #expect(!FrameType(rawValue: 0x7F).isCritical)
        #expect(FrameType(rawValue: 0x80).isCritical)
    }

    private func encoded(_ header: FrameHeader) -> [UInt8] { bytes { header.append(to: &$0) } }
}
