import Base
import TestSupport
import Testing

@Suite struct HexTests {
    @Test func bytesAreWrittenInLowerCase() {
        #expect(Hex.encode([0x00, 0x0F, 0xA9, 0xFF]) == "000fa9ff")
        #expect(Hex.encode([]) == "")
    }

    @Test func bothCasesAreRead() {
        #expect(Hex.decode("000fA9fF".utf8) == [0x00, 0x0F, 0xA9, 0xFF])
        #expect(Hex.decode("".utf8) == [])
    }

    @Test func anythingElseIsRefused() {
        for wrong in ["0", "000", "0g", "g0", " 00", "0x00", "00\n", "٠٠", "-1", "0\0"] {
            #expect(Hex.decode(wrong.utf8) == nil, "\(wrong)")
        }
    }

    @Test func everyByteStringComesBack() {
        var random = SeededRandom.printed()
        for count in 0..<100 {
            let bytes = random.bytes(count)
            #expect(Hex.decode(Hex.encode(bytes).bytes) == bytes)
        }
    }
}

@Suite struct Base64Tests {
    /// RFC 4648 §10.
    private static let vectors = [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ]

    @Test(arguments: vectors) func theStandardsExamplesHold(plain: String, encoded: String) {
        #expect(Base64.standard.encodeToString([UInt8](plain.utf8)) == encoded)
        #expect(Base64.standard.decode([UInt8](encoded.utf8)) == [UInt8](plain.utf8))
        let unpadded = encoded.filter { $0 != "=" }
        #expect(Base64.url.encodeToString([UInt8](plain.utf8)) == unpadded)
        #expect(Base64.url.decode([UInt8](unpadded.utf8)) == [UInt8](plain.utf8))
    }

    @Test func theTwoAlphabetsDifferInTwoCharacters() {
        #expect(Base64.standard.encodeToString([0xFB, 0xFF]) == "+/8=")
        #expect(Base64.url.encodeToString([0xFB, 0xFF]) == "-_8")
        #expect(Base64.url.decode([UInt8]("+/8".utf8)) == nil)
        #expect(Base64.standard.decode([UInt8]("-_8=".utf8)) == nil)
    }

    @Test func wrongPaddingIsRefused() {
        for wrong in [
            "Zg", "Zg=", "Zg===", "Zg=a", "Z===", "====", "=", "==", "Zm8", "Zm8==", "Zm9v=", "Zm9v====", "Zg==Zg==",
        ] {
            #expect(Base64.standard.decode([UInt8](wrong.utf8)) == nil, "\(wrong)")
        }
        for wrong in ["Zg==", "Zg=", "Zm8=", "Z", "Zm9vY"] {
            #expect(Base64.url.decode([UInt8](wrong.utf8)) == nil, "\(wrong)")
        }
    }

    @Test func whiteSpaceAndForeignBytesAreRefused() {
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for byte in UInt8.min ... .max {
            #expect((Base64.url.decode([0x41, byte, 0x41, 0x41]) != nil) == alphabet.contains(byte), "\(byte)")
        }
        #expect(Base64.standard.decode([UInt8]("Zm9v\n".utf8)) == nil)
        #expect(Base64.standard.decode([UInt8]("Zm 9v".utf8)) == nil)
    }

    @Test func everyByteStringHasOneSpelling() {
        // One byte takes 12 bits of text: of the 64 × 64 texts, 256 are spellings.
        let alphabet = [UInt8]("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var decoded: [[UInt8]] = []
        for first in alphabet {
            for second in alphabet {
                if let bytes = Base64.url.decode([first, second]) { decoded.append(bytes) }
            }
        }
        #expect(decoded.count == 256 && Set(decoded).count == 256)
        let ofTwo = alphabet.compactMap { Base64.url.decode([0x41, 0x41, $0]) }
        #expect(ofTwo.count == 16 && Set(ofTwo).count == 16)
    }

    @Test func everyByteStringComesBackAndNoOtherTextDoes() {
        var random = SeededRandom.printed()
        for count in 0..<200 {
            let bytes = random.bytes(count)
            for base64 in [Base64.url, .standard] {
                var text = base64.encode(bytes)
                #expect(base64.decode(text) == bytes)
                guard count > 0 else { continue }
                text[random.below(text.count)] = UInt8(truncatingIfNeeded: random.next())
                if let other = base64.decode(text) { #expect(base64.encode(other) == text) }
            }
        }
    }

    @Test func bytesThatAreLentAreThoseThatAreDecoded() {
        var random = SeededRandom.printed()
        let characters = [UInt8]("ABab01+/-_= \n".utf8)
        for base64 in [Base64.url, .standard] {
            var soundCount = 0
            func compare(_ text: [UInt8]) {
                var isLent = false
                let lent = text.withUnsafeBytes { text in
                    base64.withDecoded(text) { bytes -> [UInt8] in
                        isLent = true
                        return [UInt8](bytes)
                    }
                }
                let decoded = base64.decode(text)
                #expect(lent == decoded && isLent == (decoded != nil), "\(text)")
                if decoded != nil { soundCount += 1 }
            }
            for count in 0..<300 {
                let text = base64.encode(random.bytes(count))
                compare(text)
                for _ in 0..<10 { compare(random.mutated(text, alphabet: characters)) }
                compare((0..<count % 9).map { _ in characters[random.below(characters.count)] })
                compare(random.bytes(count % 9))
            }
            #expect(soundCount > 300)
        }
    }
}
