import Base
import Crypto
import JSON
import TestSupport
import Testing

@testable import Tokens

/// The splitter sees everything that peers send, before anything is trusted: it refuses what is not exactly a token.
@Suite struct JWTTests {
    private let token = TokenForge.token()

    private func split(_ token: [UInt8], byteCountMax: Int = 8_192) -> JWT? { JWT(token, byteCountMax: byteCountMax) }

    private func split(header: String) -> JWT? { split(TokenForge.token(header: utf8(header))) }

    @Test func aTokenIsSplitIntoWhatItSays() throws {
        let jwt = try #require(split(token))
        let parts = parts(token)
        #expect(jwt.algorithm == "ES256" && jwt.type == "JWT")
        #expect(jwt.keyID == TokenForge.key(.es256).publicKey.keyID)
        #expect(Array(jwt.signedBytes) == joined(Array(parts[..<2])))
        #expect(jwt.payload == TokenForge.payload.serialized())
        #expect(jwt.signature == Base64.url.decode(parts[2]))
    }

    @Test func aTypeMayBeMissingForOtherKindsOfTokens() {
        #expect(split(header: #"{"alg":"ES256","kid":"k"}"#)?.type == nil)
        #expect(split(header: #"{"alg":"ES256","kid":"k"}"#) != nil)
    }

    @Test func aKeyMayBeUnnamed() throws {
        let jwt = try #require(split(header: #"{"alg":"ES256"}"#))
        #expect(jwt.keyID == nil)
    }

    @Test func `A header without a kid, or a long one, names no key`() {
        func namesNoKey(_ header: String) -> Bool {
            TokenForge.token(header: utf8(header)).withUnsafeBytes { JWT.namesNoKey($0) }
        }
        #expect(namesNoKey(#"{"alg":"ES256"}"#))
        #expect(!namesNoKey(#"{"alg":"ES256","kid":"k"}"#))
        // 760 bytes are 1,014 characters, and 780 are 1,040.
        for (byteCount, isLong) in [(760, false), (780, true)] {
            let rest = #"{"alg":"ES256","kid":"k","x":""}"#.utf8.count
            let text = String(repeating: "x", count: byteCount - rest)
            #expect(namesNoKey(#"{"alg":"ES256","kid":"k","x":"\#(text)"}"#) == isLong, "\(byteCount)")
        }
        for other in ["", ".", "token", "a.b.c", "e30", "[].", "?.x"] {
            #expect(!utf8(other).withUnsafeBytes { JWT.namesNoKey($0) }, "\(other)")
        }
    }

    @Test func otherThanThreePartsAreRefused() {
        let parts = parts(token)
        for wrong in [
            [], [[]], [[], []], [parts[0]], Array(parts[..<2]), parts + [[]], parts + [parts[2]], [[]] + parts,
            parts + parts, [parts[0], parts[1], [], parts[2]], [parts[0], [], parts[1], [], parts[2]],
        ] {
            #expect(split(joined(wrong)) == nil, "\(wrong.count) parts")
        }
    }

    @Test func anEmptyPartIsNoHeader() {
        var parts = parts(token)
        parts[0] = []
        #expect(split(joined(parts)) == nil)
    }

    @Test(arguments: 0..<3) func eachPartIsStrictBase64url(part: Int) {
        let original = parts(token)
        let text = original[part]
        var wrong: [[UInt8]] = [
            text + utf8("="), text + utf8("=="), utf8(" ") + text, text + utf8("\n"), text + utf8("A=A"),
            text.dropLast() + utf8("+"), text.dropLast() + utf8("/"), text.dropLast() + utf8("\u{E9}"), text + [0],
        ]
        // One character above a multiple of four encodes no whole byte.
        wrong.append(text + [UInt8](repeating: UInt8(ascii: "A"), count: (5 - text.count % 4) % 4))
        for text in wrong {
            var changed = original
            changed[part] = text
            #expect(split(joined(changed)) == nil, "\(String(decoding: text.suffix(8), as: UTF8.self))")
        }
    }

    @Test(arguments: 0..<3) func unusedBitsAreZero(part: Int) {
        let alphabet = utf8("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let original = parts(token)
        let header = TokenForge.header().serialized()
        for spaceCount in 0..<3 {
            // White space around JSON changes only its length; in a signature, every byte counts.
            let text = Base64.url.encode(header + [UInt8](repeating: 0x20, count: spaceCount))
            var changed = original
            changed[part] = text
            #expect(split(joined(changed)) != nil)
            let unusedBitCount = [0, 0, 4, 2][text.count % 4]
            for bits in 1..<1 << unusedBitCount {
                let last = alphabet.firstIndex(of: text.last!)!
                changed[part] = text.dropLast() + [alphabet[last ^ bits]]
                #expect(split(joined(changed)) == nil, "\(bits) in \(unusedBitCount) unused bits")
            }
        }
    }

    @Test(arguments: [
        "", "null", "[]", "\"alg\"", "1", "{}", "{", #"{"alg":"ES256","kid":"k"}x"#, #"{"alg":"ES256","kid":"k"}{}"#,
        #"{"kid":"k"}"#, #"{"alg":null,"kid":"k"}"#, #"{"alg":["ES256"],"kid":"k"}"#,
        #"{"alg":"ES256","kid":7}"#, #"{"alg":"ES256","kid":null}"#, #"{"alg":"ES256","kid":"k","typ":null}"#,
        #"{"alg":"ES256","kid":"k","typ":["JWT"]}"#, #"{"alg":"ES256","alg":"none","kid":"k"}"#,
        #"{"alg":"ES256","kid":"k","kid":"l"}"#, #"{"alg":"none","\u0061lg":"ES256","kid":"k"}"#,
        #"{"alg":"ES256","kid":"k","typ":"JWT","typ":"JWT"}"#, #"{"alg":"ES256","kid":"k","x":{"a":1,"a":2}}"#,
        #"{"alg":"ES256","kid":"k\u0000"}"#, "\u{FEFF}{\"alg\":\"ES256\",\"kid\":\"k\"}",
        #"{"alg":"ES256","kid":"\ud800"}"#, #"{"alg":"ES256","kid":"k",}"#, #"{'alg':'ES256','kid':'k'}"#,
        #"[{"alg":"ES256","kid":"k"}]"#,
    ])
    func aHeaderIsOneJSONObjectWithAnAlgorithm(header: String) {
        #expect(split(header: header) == nil)
    }

    @Test(arguments: [#""crit":["exp"]"#, #""crit":[]"#, #""crit":null"#, #""b64":false"#, #""b64":true"#])
    func extensionsThatChangeTheMeaningAreRefused(member: String) {
        #expect(split(header: #"{"alg":"ES256","kid":"k","typ":"JWT","# + member + "}") == nil)
        #expect(split(header: "{" + member + #","alg":"ES256","kid":"k","typ":"JWT"}"#) == nil)
    }

    @Test func otherMembersOfTheHeaderAreIgnored() {
        #expect(
            split(header: #"{"alg":"ES256","kid":"k","jku":"https://evil.test","jwk":{"kty":"oct"},"x5u":1}"#) != nil)
    }

    @Test func aHeaderThatIsNotUTF8IsRefused() {
        for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0]] {
            let header = utf8(#"{"alg":"ES256","kid":""#) + bytes + utf8("\"}")
            #expect(split(TokenForge.token(header: header)) == nil)
        }
    }

    @Test func aKeyIDHasAtMost64Bytes() {
        #expect(split(header: #"{"alg":"ES256","kid":""# + String(repeating: "k", count: 64) + "\"}") != nil)
        #expect(split(header: #"{"alg":"ES256","kid":""# + String(repeating: "k", count: 65) + "\"}") == nil)
    }

    @Test func aTokenAboveTheLimitIsNotLookedAt() {
        #expect(split(token, byteCountMax: token.count) != nil)
        #expect(split(token, byteCountMax: token.count - 1) == nil)
        #expect(split([UInt8](repeating: UInt8(ascii: "."), count: 10_000_000)) == nil)
        #expect(split([UInt8](repeating: UInt8(ascii: "."), count: 8_192)) == nil)
        #expect(split([UInt8](repeating: UInt8(ascii: "A"), count: 8_192)) == nil)
    }

    @Test func nestingWithoutEndIsRefused() {
        #expect(split(header: #"{"alg":"ES256","kid":"k","x":"# + String(repeating: "[", count: 5_000)) == nil)
        let deep = String(repeating: "[", count: 16) + String(repeating: "]", count: 16)
        #expect(split(header: #"{"alg":"ES256","kid":"k","x":"# + deep + "}") == nil)
    }

    @Test func noInputTraps() {
        var random = SeededRandom.printed()
        let alphabet = utf8("ABCXYZabcxyz0189-_.=+/ \n{}\"")
        var splitCount = 0
        for _ in 0..<20_000 {
            var bytes = token
            for _ in 0...random.below(4) where !bytes.isEmpty {
                let index = random.below(bytes.count)
                switch random.below(5) {
                case 0: bytes.remove(at: index)
                case 1: bytes.insert(alphabet[random.below(alphabet.count)], at: index)
                case 2: bytes.removeSubrange(index...)
                case 3: bytes[index] = UInt8(truncatingIfNeeded: random.next())
                default: bytes[index] = alphabet[random.below(alphabet.count)]
                }
            }
            guard let jwt = split(bytes) else { continue }
            splitCount += 1
            let again = joined([Array(jwt.signedBytes), Base64.url.encode(jwt.signature)])
            if again != bytes { Issue.record("a token with two spellings: \(bytes)") }
        }
        #expect(splitCount > 0)
    }
}
