import Base
import Testing
import Wire

@Suite struct FrameDecoderTests {
    /// A step without slices, so that steps can be compared.
    enum Seen: Equatable {
        case frame(UInt8, UInt32, [UInt8])
        case oversized(UInt32, UInt32)
        case violation(UInt32)
    }

    /// Feeds `input` in pieces of `pieceByteCount`; returns all steps but `needMore`.
    func decode(_ input: [UInt8], inPiecesOf pieceByteCount: Int, payloadMax: Int = 64) -> [Seen] {
        var decoder = FrameDecoder(payloadHardMax: 1024)
        var buffer = ByteBuffer()
        var seen: [Seen] = []
        var position = 0
        while true {
            switch decoder.next(in: &buffer, payloadMax: payloadMax, now: Instant(nanoseconds: 1)) {
            case .needMore(let byteCountWanted):
                #expect(byteCountWanted > 0)
                #expect(buffer.readableByteCount < FrameHeader.byteCount + payloadMax)
                guard position < input.count else { return seen }
                let piece = input[position..<min(position + pieceByteCount, input.count)]
                buffer.append(contentsOf: [UInt8](piece))
                position += piece.count
            case .frame(let header, let payload):
                #expect(Int(header.payloadByteCount) == payload.count)
                seen.append(.frame(header.type.rawValue, header.stream, [UInt8](payload)))
            case .oversized(let header): seen.append(.oversized(header.stream, header.payloadByteCount))
            case .violation(let header):
                seen.append(.violation(header.payloadByteCount))
                return seen
            }
        }
    }

    static let three = frame(1, stream: 1, [1, 2, 3]) + frame(3, stream: 3) + frame(0x7F, stream: 5, [UInt8](0..<64))
    static let threeSeen: [Seen] = [.frame(1, 1, [1, 2, 3]), .frame(3, 3, []), .frame(0x7F, 5, [UInt8](0..<64))]

    @Test(arguments: 1...three.count) func `Frames are found however the bytes are cut`(pieceByteCount: Int) {
        #expect(decode(Self.three, inPiecesOf: pieceByteCount) == Self.threeSeen)
    }

    @Test(arguments: 0..<three.count) func `A truncated frame is waited for, not handed out`(count: Int) {
        let complete = [13, 23, 97].filter { $0 <= count }.count
        for pieceByteCount in [1, 7, Self.three.count] {
            #expect(
                decode(Array(Self.three[..<count]), inPiecesOf: pieceByteCount) == Array(Self.threeSeen[..<complete]))
        }
    }

    @Test func `A length of zero is a frame without a payload`() {
        #expect(decode(frame(0x11, stream: 0), inPiecesOf: 100) == [.frame(0x11, 0, [])])
    }

    @Test(arguments: [1, 9, 10, 11, 64, 10_000])
    func `A frame above the limit is reported once, swallowed, and the next one is read`(pieceByteCount: Int) {
        let large = [UInt8](repeating: 0xAA, count: 65)
        let hardMax = [UInt8](repeating: 0xBB, count: 1024)
        let input = frame(1, stream: 7, large) + frame(1, stream: 9, hardMax) + frame(1, stream: 11, [5])
        #expect(
            decode(input, inPiecesOf: pieceByteCount)
                == [.oversized(7, 65), .oversized(9, 1024), .frame(1, 11, [5])])
    }

    @Test func `A frame at the limit is read, one byte more is too much`() {
        #expect(decode(frame(1, stream: 1, Array(repeating: 0, count: 64)), inPiecesOf: 9).count == 1)
        #expect(decode(frame(1, stream: 1, Array(repeating: 0, count: 65)), inPiecesOf: 9) == [.oversized(1, 65)])
    }

    @Test(arguments: [1025, 0x00FF_FFFF, 0x0100_0000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] as [UInt32])
    func `A length above the hard cap is a violation before any of the body came`(length: UInt32) {
        #expect(decode(frame(1, stream: 1, length: length), inPiecesOf: 1) == [.violation(length)])
    }

    @Test func `After a violation nothing is read any more`() {
        var decoder = FrameDecoder(payloadHardMax: 1024)
        var input = ByteBuffer(frame(1, stream: 1, length: .max) + frame(1, stream: 3))
        for _ in 0..<2 {
            guard case .violation = decoder.next(in: &input, payloadMax: 64, now: Instant(nanoseconds: 0)) else {
                Issue.record("read on")
                return
            }
        }
    }

    @Test func `The hard cap is never above what three bytes can say`() {
        var decoder = FrameDecoder(payloadHardMax: .max)
        var input = ByteBuffer(frame(1, stream: 1, length: 0x0100_0000))
        guard case .violation = decoder.next(in: &input, payloadMax: .max, now: Instant(nanoseconds: 0)) else {
            Issue.record("a first byte other than zero was accepted")
            return
        }
    }

    @Test func `A payload is a slice of the input`() {
        var decoder = FrameDecoder(payloadHardMax: 1024)
        var input = ByteBuffer(frame(1, stream: 1, [1, 2]))
        let start = input.readable.baseAddress
        guard case .frame(_, let payload) = decoder.next(in: &input, payloadMax: 64, now: Instant(nanoseconds: 0))
        else {
            Issue.record("no frame")
            return
        }
        #expect(payload.baseAddress == start.map { $0 + 10 })
    }

    @Test func `The deadline of a frame counts from its first byte, and only within a frame`() {
        var decoder = FrameDecoder(payloadHardMax: 1024)
        var input = ByteBuffer()
        func step(_ time: Int64, _ bytes: [UInt8]) -> Int64? {
            input.append(contentsOf: bytes)
            while true {
                let next = decoder.next(in: &input, payloadMax: 64, now: Instant(nanoseconds: time))
                if case .needMore = next { return decoder.partialSince?.nanoseconds }
            }
        }
        let one = frame(1, stream: 1, [1, 2, 3])
        let large = frame(1, stream: 3, Array(repeating: 0, count: 100))
        #expect(step(1, []) == nil)
        #expect(step(2, [one[0]]) == 2)
        #expect(step(3, Array(one[1..<12])) == 2)
        #expect(step(4, [one[12]]) == nil)
        #expect(step(5, one + one[..<1]) == 5)
        #expect(step(6, Array(one[1...]) + large[..<20]) == 6)
        #expect(step(7, Array(large[20..<109])) == 6)
        #expect(step(8, Array(large[109...])) == nil)
        #expect(step(9, one) == nil)
    }

    @Test func `Random frames cut at random places come out whole`() {
        var generator = SeededGenerator()
        print("FrameDecoderTests seed: \(generator.seed)")
        for _ in 0..<200 {
            var input: [UInt8] = []
            var expected: [Seen] = []
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                let payload = (0..<Int.random(in: 0...80, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                let stream = UInt32.random(in: 0...UInt32.max, using: &generator)
                let type = UInt8.random(in: 0...255, using: &generator)
                input += frame(type, stream: stream, payload)
                expected.append(
                    payload.count > 64 ? .oversized(stream, UInt32(payload.count)) : .frame(type, stream, payload))
            }
            let pieceByteCount = Int.random(in: 1...40, using: &generator)
            #expect(decode(input, inPiecesOf: pieceByteCount) == expected, "seed \(generator.seed)")
        }
    }
}
