import Testing

@testable import ExampleTerminal

/// The QR code that the terminal draws.
@Suite struct TerminalQRCodeTests {
    private static let colours = (start: "\u{1B}[30;107m", end: "\u{1B}[0m")

    /// The rows of modules that the lines show, the light border included.
    private static func modules(shownBy lines: [String]) -> [[Bool]] {
        lines.flatMap { line -> [[Bool]] in
            let characters = Array(line.dropFirst(colours.start.count).dropLast(colours.end.count))
            return [characters.map { "▀█".contains($0) }, characters.map { "▄█".contains($0) }]
        }
    }

    @Test func `Two rows of modules share a line, inside a light border`() {
        let code = TerminalQRCode(modules: [[true, false, true], [true, true, false], [false, true, false]])
        let lines = code.lines
        #expect(lines.allSatisfy { $0.hasPrefix(Self.colours.start) && $0.hasSuffix(Self.colours.end) })
        #expect(lines.count == 6 && lines[2].contains("    █▄▀    ") && lines[3].contains("     ▀     "))
        let shown = Self.modules(shownBy: lines)
        #expect(shown.allSatisfy { $0.count == 11 })
        #expect(shown[4..<7].map { Array($0[4..<7]) } == code.modules)
        #expect(shown.joined().count { $0 } == 5)
    }

    @Test func `The lines show every module of a code`() throws {
        let code = try #require(TerminalQRCode("otpauth://totp/Acme:ada%40example.com?secret=ABCDEFGH&issuer=Acme"))
        let shown = Self.modules(shownBy: code.lines)
        let side = code.modules.count
        #expect(side >= 21 && side % 4 == 1)
        #expect(shown.dropFirst(4).prefix(side).map { Array($0.dropFirst(4).prefix(side)) } == code.modules)
        // The finder pattern that every code has in its corners.
        let finder = "1111111 1000001 1011101 1011101 1011101 1000001 1111111"
        let rows = code.modules.prefix(7).map { row in row.prefix(7).map { $0 ? "1" : "0" }.joined() }
        #expect(rows.joined(separator: " ") == finder)
    }

    @Test func `A text that no code can hold has none`() {
        #expect(TerminalQRCode(String(repeating: "a", count: 3_000)) == nil)
        #expect(TerminalQRCode("") == nil)
    }
}
