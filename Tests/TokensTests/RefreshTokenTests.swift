import Base
import Crypto
import TestSupport
import Testing

@testable import Tokens

@Suite struct RefreshTokenTests {
    private let codec = RefreshTokenCodec(key: HMACKey(Secret("key")), keyID: [1, 2, 3, 4])
    private let token = RefreshToken(sessionID: (0..<16).map { $0 * 3 }, counter: 0x0102_0304_0506_0708)

    private func decode(_ bytes: [UInt8]) -> RefreshToken? { codec.decode(Text(unchecked: Base64.url.encode(bytes))) }

    private var bytes: [UInt8] { Base64.url.decode(codec.encode(token).bytes)! }

    @Test func aTokenComesBack() {
        var random = SeededRandom.printed()
        #expect(codec.decode(codec.encode(token)) == token)
        for counter: UInt64 in [0, 1, 255, 256, .max - 1, .max] {
            let token = RefreshToken(sessionID: random.bytes(16), counter: counter)
            #expect(codec.decode(codec.encode(token)) == token)
        }
    }

    @Test func theLayoutIsVersionKeySessionCounterAndCode() {
        #expect(bytes.count == 61)
        #expect(bytes[0] == 1)
        #expect(Array(bytes[1..<5]) == [1, 2, 3, 4])
        #expect(Array(bytes[5..<21]) == token.sessionID)
        #expect(Array(bytes[21..<29]) == [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(codec.encode(token).byteCount == 82)
    }

    @Test func theSameTokenIsMadeAgain() {
        #expect(codec.encode(token) == codec.encode(token))
        var successor = token
        successor.counter += 1
        #expect(codec.encode(successor) != codec.encode(token))
    }

    @Test func everyBitOfItMatters() {
        for index in bytes.indices {
            for bit in 0..<8 {
                var wrong = bytes
                wrong[index] ^= 1 << UInt8(bit)
                #expect(decode(wrong) == nil, "bit \(bit) of byte \(index)")
            }
        }
    }

    @Test func everyCharacterOfItMatters() {
        let text = codec.encode(token).bytes
        for index in text.indices {
            for character: UInt8 in [
                text[index] ^ 1, text[index] ^ 0x20, UInt8(ascii: "="), UInt8(ascii: "+"), 0x20, 0,
            ] {
                var wrong = text
                wrong[index] = character
                #expect(codec.decode(Text(unchecked: wrong)) == nil, "\(character) at \(index)")
            }
        }
    }

    @Test func everyOtherLengthIsRefused() {
        let text = codec.encode(token).bytes
        for count in 0..<text.count { #expect(codec.decode(Text(unchecked: Array(text[..<count]))) == nil) }
        for more in ["A", "=", "==", ".", "AA", "AAAA", "\n"] {
            #expect(codec.decode(Text(unchecked: text + utf8(more))) == nil)
        }
        #expect(codec.decode(Text(unchecked: [UInt8](repeating: UInt8(ascii: "A"), count: 1_000_000))) == nil)
    }

    @Test func unusedBitsAreZero() {
        var text = codec.encode(token).bytes
        let right = text[81]
        let others = utf8("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_").filter { $0 != right }
        for character in others {
            text[81] = character
            #expect(codec.decode(Text(unchecked: text)) == nil)
        }
    }

    @Test func anotherKeysTokenIsRefused() {
        let otherKey = RefreshTokenCodec(key: HMACKey(Secret("other")), keyID: [1, 2, 3, 4])
        let otherID = RefreshTokenCodec(key: HMACKey(Secret("key")), keyID: [1, 2, 3, 5])
        #expect(codec.decode(otherKey.encode(token)) == nil)
        #expect(codec.decode(otherID.encode(token)) == nil)
    }

    @Test func aCodeForAnotherPurposeIsNoToken() {
        let body = Array(bytes[..<29])
        #expect(decode(body + HMACKey(Secret("key")).tag(of: body)) == nil)
    }
}
