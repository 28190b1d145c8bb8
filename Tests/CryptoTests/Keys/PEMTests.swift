import Base
import Testing

@testable import Crypto

@Suite struct PEMTests {
    private let der = [UInt8](0..<200)

    private func text(_ label: StaticString, _ bytes: [UInt8]) -> [UInt8] {
        PEM.encode(label, Secret(bytes)).withBytes { [UInt8]($0) }
    }

    @Test func aBlockHasLinesOf64CharactersAndReadsBack() throws {
        let encoded = text("PUBLIC KEY", der)
        let lines = String(decoding: encoded, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.first == "-----BEGIN PUBLIC KEY-----" && lines.last == "" && lines.count == 8)
        #expect(lines[1...4].allSatisfy { $0.utf8.count == 64 } && lines[6] == "-----END PUBLIC KEY-----")
        #expect(try PEM.decode("PUBLIC KEY", encoded) == der)
    }

    @Test(arguments: [1, 2, 3, 47, 48, 49, 96, 1_000]) func everyLengthReadsBack(count: Int) throws {
        let bytes = [UInt8](repeating: 0xFE, count: count)
        #expect(try PEM.decode("X", text("X", bytes)) == bytes)
    }

    @Test func whiteSpaceAndOtherLineEndsDoNotCount() throws {
        let unix = String(decoding: text("PUBLIC KEY", der), as: UTF8.self)
        for changed in [unix.replacing("\n", with: "\r\n"), " \n\t" + unix + "\n\n ", String(unix.dropLast())] {
            #expect(try PEM.decode("PUBLIC KEY", [UInt8](changed.utf8)) == der)
        }
    }

    @Test func otherThanOneBlockOfThisLabelIsRefused() {
        let good = text("PUBLIC KEY", der)
        let wrong: [[UInt8]] = [
            [], [0x20], der, text("PRIVATE KEY", der), text("RSA PUBLIC KEY", der), good + good, good.dropLast(10),
            Array(good.dropFirst()), [UInt8]("x".utf8) + good, good + [UInt8]("x".utf8), text("PUBLIC KEY", []),
            [UInt8]("-----BEGIN PUBLIC KEY-----".utf8),
            [UInt8]("-----BEGIN PUBLIC KEY----------END PUBLIC KEY-----".utf8),
            [UInt8]("-----BEGIN PUBLIC KEY-----\nProc-Type: 4\n\nAAAA\n-----END PUBLIC KEY-----".utf8),
            [UInt8]("-----BEGIN PUBLIC KEY-----\nAAA\n-----END PUBLIC KEY-----".utf8),
            [UInt8]("-----BEGIN PUBLIC KEY-----\nAA-_\n-----END PUBLIC KEY-----".utf8),
            [UInt8]("-----BEGIN PUBLIC KEY-----\nAA==AAAA\n-----END PUBLIC KEY-----".utf8),
        ]
        for text in wrong {
            #expect(throws: CryptoError.malformed, "\(String(decoding: text.prefix(40), as: UTF8.self))") {
                try PEM.decode("PUBLIC KEY", text)
            }
        }
    }
}
