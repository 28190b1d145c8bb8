import Base
import TestSupport
import Testing

@Suite struct TextTests {
    @Test func textsAreEqualWhenTheirBytesAre() {
        let composed = Text("caf\u{E9}")
        let decomposed = Text("cafe\u{301}")
        #expect(composed.string == decomposed.string)
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect(Text("a") == "a")
        #expect(Text("") == .empty && Text.empty.isEmpty && Text.empty.byteCount == 0)
    }

    @Test func textsSortByTheirBytes() {
        let sorted: [Text] = ["", "A", "Z", "a", "a!", "aa", "b", "é", "\u{FFFD}", "😀"]
        #expect(sorted.shuffled().sorted() == sorted)
        #expect(!(Text("a") < Text("a")))
    }

    @Test func bytesThatAreTextSurviveTheWayThere() {
        let text = Text(validating: [UInt8]("Zoë \u{1F600}".utf8))
        #expect(text?.string == "Zoë \u{1F600}")
        #expect(text?.description == "Zoë \u{1F600}")
        #expect(text?.byteCount == 9)
        #expect(Text(validating: [] as [UInt8]) == .empty)
    }

    @Test func nulIsNoText() {
        #expect(Text(validating: [0]) == nil)
        #expect(Text(validating: [UInt8]("victim@example.com\0@evil.test".utf8)) == nil)
        for position in 0..<20 {
            var bytes = [UInt8](repeating: 0x61, count: 20)
            bytes[position] = 0
            #expect(Text(validating: bytes) == nil, "\(position)")
        }
    }

    @Test func anUnsafeBufferIsValidatedToo() {
        let bytes: [UInt8] = [0x61, 0xC3, 0xA9]
        #expect(bytes.withUnsafeBytes { Text(validating: $0) } == "aé")
        #expect(bytes.dropLast().withUnsafeBytes { Text(validating: $0) } == nil)
        #expect(Text(validating: UnsafeRawBufferPointer(start: nil, count: 0)) == .empty)
    }
}

@Suite struct UTF8ValidationTests {
    private func isText(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { UTF8Validation.isText($0) } }

    /// The standard library's verdict, together with our own rule: no zero byte.
    private func isExpected(_ bytes: [UInt8]) -> Bool {
        !bytes.contains(0) && String(validating: bytes, as: UTF8.self) != nil
    }

    @Test func everySequenceOfUpToTwoBytesIsJudgedAsByTheStandardLibrary() {
        var wrong: [[UInt8]] = []
        for first in UInt8.min ... .max {
            if isText([first]) != isExpected([first]) { wrong.append([first]) }
            for second in UInt8.min ... .max where isText([first, second]) != isExpected([first, second]) {
                wrong.append([first, second])
            }
        }
        #expect(wrong.isEmpty)
    }

    @Test func everyScalarIsText() {
        let wrong = (1...UInt32(0x10FFFF)).compactMap(Unicode.Scalar.init).filter { scalar in
            !isText(Array(Unicode.UTF8.encode(scalar)!))
        }
        #expect(wrong.isEmpty)
    }

    @Test func surrogatesOverlongFormsAndScalarsBeyondUnicodeAreNot() {
        for wrong: [UInt8] in [
            [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xF0, 0x80, 0x80, 0x80],
            [0xF0, 0x8F, 0xBF, 0xBF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFE], [0xFF], [0x80], [0xE2, 0x82],
        ] {
            #expect(!isText(wrong), "\(wrong)")
            // The wrong bytes stand behind a word of ASCII, and within one.
            #expect(!isText([UInt8]("abcdefgh".utf8) + wrong), "\(wrong)")
            #expect(!isText([UInt8]("abc".utf8) + wrong + [UInt8]("defghijkl".utf8)), "\(wrong)")
        }
    }

    @Test func oneOddByteAnywhereInALongTextIsSeen() {
        for count in [31, 32, 33, 64, 71] {
            for place in 0..<count {
                for byte: UInt8 in [0x00, 0x01, 0x7F, 0x80, 0x81, 0xFF] {
                    var bytes = [UInt8](repeating: 0x01, count: count)
                    bytes[place] = byte
                    #expect(isText(bytes) == (0x01...0x7F).contains(byte), "\(byte) at \(place) of \(count)")
                }
            }
        }
    }

    @Test func randomBytesAreJudgedAsByTheStandardLibrary() {
        var random = SeededRandom.printed()
        let leads: [UInt8] = [0x01, 0x41, 0x7F, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4]
        let trails: [UInt8] = [0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF]
        var wrong: [[UInt8]] = []
        for _ in 0..<20_000 {
            var bytes: [UInt8] = []
            for _ in 0..<random.below(6) {
                switch random.below(6) {
                case 0: bytes += [UInt8]("0123456789".utf8)
                case 1: bytes += random.bytes(1)
                default:
                    bytes.append(leads[random.below(leads.count)])
                    for _ in 0..<random.below(4) { bytes.append(trails[random.below(trails.count)]) }
                }
            }
            if isText(bytes) != isExpected(bytes) { wrong.append(bytes) }
        }
        #expect(wrong.isEmpty)
    }
}
