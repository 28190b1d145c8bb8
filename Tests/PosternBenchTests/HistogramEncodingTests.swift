import Base
import TestSupport
import Testing

@testable import PosternBench

@Suite struct HistogramEncodingTests {
    @Test(arguments: [1, 2, 3])
    func `What is encoded is decoded`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for count in [0, 1, 5_000] {
            var histogram = Histogram()
            for _ in 0..<count { histogram.record(random.next() >> (20 + random.next() % 44)) }
            let decoded = try #require(
                Histogram(encoded: histogram.encoded(), maximum: histogram.maximum, mean: histogram.mean))
            #expect(decoded.counts == histogram.counts && decoded.count == histogram.count, "seed \(seed)")
            #expect(decoded.maximum == histogram.maximum)
            #expect(abs(decoded.mean - histogram.mean) <= 1e-9 * histogram.mean)
        }
    }

    /// Made by the Python package hdrhistogram: HdrHistogram(1, 60000000000, 3), without its compression.
    @Test func `Another implementation's encoding is read and written`() throws {
        let text = "HISTEwAAABQAAAAAAAAAAwAAAAAAAAABAAAADfhHWAA/8AAAAAAAAAEC+R8CAvsPApFO2AStMASz/QEC"
        let bytes = try #require(Base64.standard.decode([UInt8](text.utf8)))
        var histogram = Histogram()
        for value: UInt64 in [1, 2_047, 2_048, 4_095, 1_000_000, 1_000_000, 59_999_999_999] { histogram.record(value) }
        for _ in 0..<300 { histogram.record(123_456) }
        #expect(histogram.encoded() == bytes)
        #expect(Histogram(encoded: bytes)?.counts == histogram.counts)
    }

    @Test func `A log's histogram is a zlib stream of stored blocks`() {
        var histogram = Histogram()
        histogram.record(5)
        let plain = histogram.encoded()
        let bytes = histogram.encodedForLog()
        #expect(bytes.prefix(4) == [0x1C, 0x84, 0x93, 0x14] && bytes[7] == UInt8(bytes.count - 8))
        #expect(Array(bytes[8..<15]) == [0x78, 0x01, 1, UInt8(plain.count), 0, ~UInt8(plain.count), 0xFF])
        #expect(Array(bytes[15..<15 + plain.count]) == plain && bytes.count == 15 + plain.count + 4)
    }

    @Test func `Bytes that are no histogram are refused, and none traps`() async throws {
        var histogram = Histogram()
        for value in [3, 70_000, 5_000_000] { histogram.record(UInt64(value)) }
        let bytes = histogram.encoded()
        for count in 0..<bytes.count { #expect(Histogram(encoded: Array(bytes[..<count])) == nil) }
        try await inHalves { half in
            var random = SeededGenerator(seed: 4 + UInt64(half))
            for _ in 0..<3_000 {
                var broken = bytes
                for _ in 0...random.below(4) {
                    broken[random.below(broken.count)] = UInt8(truncatingIfNeeded: random.next())
                }
                _ = Histogram(encoded: broken)
            }
        }
        // A run of empty counters goes beyond the last counter, whatever its length.
        for tail: [UInt8] in [[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0xFF, 0xFF, 0xFF, 0x7F]] {
            var broken = Array(bytes[..<40]) + tail
            broken[7] = UInt8(tail.count)
            #expect(Histogram(encoded: broken) == nil)
        }
    }
}
