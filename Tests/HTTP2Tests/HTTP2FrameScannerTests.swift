import Base
import TestSupport
import Testing

@testable import HTTP2

@Suite struct HTTP2FrameScannerTests {
    private static let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0x80, 0, 0, stream] + payload
    }

    private func headers(_ scanner: inout HTTP2FrameScanner, _ bytes: ArraySlice<UInt8>) -> [HTTP2FrameHeader] {
        bytes.withUnsafeBytes { bytes in
            var offset = 0
            var found: [HTTP2FrameHeader] = []
            while let header = scanner.next(in: bytes, at: &offset) { found.append(header) }
            #expect(offset == bytes.count)
            return found
        }
    }

    @Test func `Frames are found behind the preface, in however many pieces they come`() {
        let bytes =
            Self.preface + Self.frame(4) + Self.frame(0, flags: 1, stream: 3, Array(repeating: 9, count: 300))
            + Self.frame(6, Array(repeating: 0, count: 8))
        let expected = [
            HTTP2FrameHeader(payloadByteCount: 0, type: 4),
            HTTP2FrameHeader(payloadByteCount: 300, type: 0, flags: 1, stream: 3),
            HTTP2FrameHeader(payloadByteCount: 8, type: 6),
        ]
        for pieceByteCount in [1, 2, 8, 9, 10, 100, bytes.count] {
            var scanner = HTTP2FrameScanner()
            var found: [HTTP2FrameHeader] = []
            for start in stride(from: 0, to: bytes.count, by: pieceByteCount) {
                found += headers(&scanner, bytes[start..<min(start + pieceByteCount, bytes.count)])
            }
            #expect(found == expected)
            #expect(scanner.isBetweenFrames)
        }
    }

    @Test func `A frame that has begun and not ended is known`() {
        var scanner = HTTP2FrameScanner()
        #expect(!scanner.isBetweenFrames)
        _ = headers(&scanner, Self.preface[...])
        #expect(scanner.isBetweenFrames)
        _ = headers(&scanner, Self.frame(0, [1, 2])[..<10])
        #expect(!scanner.isBetweenFrames)
        _ = headers(&scanner, [2])
        #expect(scanner.isBetweenFrames)
    }
}
