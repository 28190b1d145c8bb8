import Base
import Crypto
import JSON
import TestSupport
import Testing

@testable import Tokens

/// Signatures that are almost right, and those that a careless check lets through.
@Suite struct TokenSignatureTests {
    private let forge = TokenForge()

    /// The genuine token with another signature.
    private func token(_ algorithm: SigningAlgorithm, signature: [UInt8]) -> [UInt8] {
        var parts = parts(TokenForge.token(algorithm))
        parts[2] = Base64.url.encode(signature)
        return joined(parts)
    }

    private func signature(_ algorithm: SigningAlgorithm) -> [UInt8] {
        Base64.url.decode(parts(TokenForge.token(algorithm))[2])!
    }

    @Test(arguments: SigningAlgorithm.allCases) func everyBitOfASignatureMatters(algorithm: SigningAlgorithm) {
        var signed = parts(TokenForge.token(algorithm))
        let right = Base64.url.decode(signed[2])!
        #expect(forge.error(joined(signed)) == nil)
        // An RSA signature is long: each of its bytes is changed once, in one bit.
        for index in right.indices {
            for bit in algorithm == .rs256 ? [index % 8] : Array(0..<8) {
                var wrong = right
                wrong[index] ^= 1 << UInt8(bit)
                signed[2] = Base64.url.encode(wrong)
                #expect(forge.error(joined(signed)) == .invalid, "bit \(bit) of byte \(index)")
            }
        }
    }

    @Test(arguments: SigningAlgorithm.allCases) func aSignatureHasItsOneLength(algorithm: SigningAlgorithm) {
        var signed = parts(TokenForge.token(algorithm))
        let right = Base64.url.decode(signed[2])!
        for wrong in [
            [], Array(right.dropLast()), Array(right.dropFirst()), right + [0], [0] + right, right + right,
            [UInt8](repeating: 0, count: 2_000),
        ] {
            signed[2] = Base64.url.encode(wrong)
            #expect(forge.error(joined(signed)) == .invalid, "\(wrong.count) bytes")
        }
    }

    @Test(arguments: SigningAlgorithm.allCases) func constantSignaturesAreRefused(algorithm: SigningAlgorithm) {
        let count = signature(algorithm).count
        for byte: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
            #expect(forge.error(token(algorithm, signature: [UInt8](repeating: byte, count: count))) == .invalid)
        }
    }

    /// SEC 2, secp256r1: the order n, and the prime p of the field.
    private static let order = Hex.decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551".utf8)!
    private static let prime = Hex.decode("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff".utf8)!

    @Test func anES256SignatureOutOfRangeIsRefused() {
        let right = signature(.es256)
        let (r, s) = (Array(right[..<32]), Array(right[32...]))
        let zero = [UInt8](repeating: 0, count: 32)
        let one = [UInt8](repeating: 0, count: 31) + [1]
        let largest = [UInt8](repeating: 0xFF, count: 32)
        // "Psychic signatures" (CVE-2022-21449) were zeroes; n and p are zero and small again, modulo n.
        let edges = [zero, one, Self.order, Self.prime, largest]
        for left in edges + [r] {
            for right in edges + [s] where !(left == r && right == s) {
                #expect(forge.error(token(.es256, signature: left + right)) == .invalid)
            }
        }
        #expect(forge.error(token(.es256, signature: s + r)) == .invalid)
    }

    @Test func anES256SignatureIsNotDER() {
        let right = signature(.es256)
        func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            let digits = Array(bytes.drop { $0 == 0 })
            let body = digits.first.map { $0 >= 0x80 } == true ? [0] + digits : digits
            return [0x02, UInt8(body.count)] + body
        }
        let body = integer(right[..<32]) + integer(right[32...])
        #expect(forge.error(token(.es256, signature: [0x30, UInt8(body.count)] + body)) == .invalid)
    }

    /// RFC 8032: the order L of edwards25519, little-endian. S + L signs the same for a verifier without the check of
    /// §5.1.7.
    private static let edwardsOrder =
        Hex.decode("edd3f55c1a631258d69cf7a2def9de14".utf8)! + [UInt8](repeating: 0, count: 15) + [0x10]

    @Test func anEdDSASignatureHasNoSecondSpelling() {
        var signed = parts(TokenForge.token(.edDSA))
        let right = Base64.url.decode(signed[2])!
        var sum: [UInt8] = []
        var carry = 0
        for index in 0..<32 {
            let total = Int(right[32 + index]) + Int(Self.edwardsOrder[index]) + carry
            sum.append(UInt8(truncatingIfNeeded: total))
            carry = total >> 8
        }
        #expect(carry == 0)
        signed[2] = Base64.url.encode(right[..<32] + sum)
        #expect(forge.error(joined(signed)) == .invalid)
    }

    @Test func theSignatureCoversHeaderAndPayload() {
        let honest = parts(TokenForge.token())
        let other = parts(TokenForge.token(payload: TokenForge.payload.with("sub", "u2").with("user_id", "u2")))
        #expect(forge.error(joined([honest[0], other[1], honest[2]])) == .invalid)
        let header = Base64.url.encode(TokenForge.header().with("x", 1).serialized())
        #expect(forge.error(joined([header, honest[1], honest[2]])) == .invalid)
        // The same JSON, spelled another way.
        let spaced = Base64.url.encode(TokenForge.payload.prettyPrinted())
        #expect(forge.error(joined([honest[0], spaced, honest[2]])) == .invalid)
    }

    @Test func noMutationOfATokenVerifies() {
        var random = SeededRandom.printed()
        for algorithm in SigningAlgorithm.allCases {
            let token = TokenForge.token(algorithm)
            for _ in 0..<700 {
                var bytes = token
                for _ in 0...random.below(3) {
                    let index = random.below(bytes.count)
                    switch random.below(4) {
                    case 0: bytes.remove(at: index)
                    case 1: bytes.insert(bytes[random.below(bytes.count)], at: index)
                    case 2: bytes.swapAt(index, random.below(bytes.count))
                    default: bytes[index] = token[random.below(token.count)]
                    }
                }
                if bytes != token, forge.error(bytes) == nil { Issue.record("accepted: \(bytes)") }
            }
        }
    }
}
