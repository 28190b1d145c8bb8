import Testing

@testable import Transport

/// The head of a request to the side port, as its bytes come in.
@Suite struct HTTPRequestHeadTests {
    @Test(arguments: [
        "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /healthz?a=b HTTP/1.0\n\n", "HEAD /keys HTTP/1.1\n\r\n",
        "\r\n\r\n", "\n", "\r\r\n\n", "POST / HTTP/1.1\r\ncontent-length: 7\r\n\r\n", "GET / HTTP/1.1\r\r\n\r\n",
    ])
    func piecesSayWhatTheWholeSays(request: String) {
        let bytes = [UInt8](request.utf8)
        let whole = HTTPRequestHead.parse(bytes)
        #expect(whole != .incomplete)
        for first in 0...bytes.count {
            for second in first...bytes.count {
                let ends = [first, second, bytes.count]
                #expect(Self.parse(bytes, inPiecesUpTo: ends) == whole, "\(request.debugDescription) \(ends)")
            }
        }
        #expect(Self.parse(bytes, inPiecesUpTo: Array(0...bytes.count)) == whole)
    }

    private static func parse(_ bytes: [UInt8], inPiecesUpTo ends: [Int]) -> HTTPRequestHead.Parsed {
        var knownCount = 0
        for end in ends {
            let parsed = HTTPRequestHead.parse(Array(bytes[..<end]), knownCount: knownCount)
            guard case .incomplete = parsed else { return end == ends.last ? parsed : HTTPRequestHead.parse(bytes) }
            knownCount = end
        }
        return .incomplete
    }

    @Test func aPathThatIsNotTextIsMalformed() {
        for path: [UInt8] in [[0x2F, 0xFF], [0x2F, 0x00], [0x2F, 0xC0, 0x80]] {
            #expect(HTTPRequestHead.parse([UInt8]("GET ".utf8) + path + [UInt8](" HTTP/1.1\n\n".utf8)) == .malformed)
        }
    }
}
