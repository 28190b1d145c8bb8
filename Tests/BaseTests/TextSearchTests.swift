import Base
import TestSupport
import Testing

@Suite struct TextSearchTests {
    private static let parts: [StaticString] = ["", "a", "%", "%%", "%LINK%", "%%A", "aba", "\u{E9}"]

    private static func isFound(_ part: StaticString, in text: Text) -> Bool {
        let wanted = part.withUTF8Buffer { Array($0) }
        return (0...text.byteCount).contains { text.bytes.dropFirst($0).starts(with: wanted) }
    }

    @Test func `A part is found wherever it stands and nowhere else`() {
        var random = SeededRandom.printed()
        let pieces = ["a", "b", "ab", "%", "%%", "LINK", "%LINK", "A", "\u{E9}", "\u{E8}"]
        for _ in 0..<3_000 {
            let text = Text((0..<random.below(12)).map { _ in pieces[random.below(pieces.count)] }.joined())
            for part in Self.parts {
                #expect(text.contains(part) == Self.isFound(part, in: text), "\(part) in \(text)")
            }
        }
    }

    @Test func `A byte is found from a place on`() {
        let places = [UInt8]("a%b%%".utf8).withUnsafeBytes { bytes in
            (0...7).map { bytes.place(of: UInt8(ascii: "%"), from: $0) }
        }
        let expected: [Int?] = [1, 1, 3, 3, 4, nil, nil, nil]
        #expect(places == expected)
        #expect(UnsafeRawBufferPointer(start: nil, count: 0).place(of: 0, from: 0) == nil)
    }
}
