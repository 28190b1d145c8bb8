import Base
import TestSupport
import Testing

@testable import Crypto

@Suite struct KeySoundnessTests {
    private func error(_ jwk: PublicJWK) -> CryptoError? {
        do throws(CryptoError) {
            _ = try VerificationKey(jwk: jwk)
            return nil
        } catch {
            return error
        }
    }

    private var modulus: [UInt8] {
        if case .rsa(let modulus, _) = RFCKeys.rsa { modulus } else { [] }
    }

    @Test func smallAndHugeRSAIsRefused() {
        #expect(error(.rsa(modulus: modulus, exponent: [1, 0, 1])) == nil)
        #expect(error(.rsa(modulus: Array(modulus.dropFirst()), exponent: [1, 0, 1])) == .outOfRange)
        #expect(error(.rsa(modulus: [0x7F] + modulus.dropFirst(), exponent: [1, 0, 1])) == .outOfRange)
        let huge = [UInt8](repeating: 0xC1, count: 513)
        #expect(error(.rsa(modulus: huge, exponent: [1, 0, 1])) == .outOfRange)
        #expect(error(.rsa(modulus: [UInt8](repeating: 0xC1, count: 100_000), exponent: [1, 0, 1])) == .malformed)
        #expect(error(.rsa(modulus: [0] + modulus, exponent: [1, 0, 1])) == .malformed)
        #expect(error(.rsa(modulus: [], exponent: [1, 0, 1])) == .malformed)
    }

    @Test func weakExponentsAreRefused() {
        for exponent: [UInt8] in [[1], [3], [17], [0xFF, 0xFF], [1, 0, 0], [1, 0, 2], [1, 0, 0, 0, 1]] {
            #expect(error(.rsa(modulus: modulus, exponent: exponent)) == .outOfRange)
        }
        #expect(error(.rsa(modulus: modulus, exponent: [1, 0, 3])) == nil)
        #expect(error(.rsa(modulus: modulus, exponent: [0, 1, 0, 1])) == .malformed)
        #expect(error(.rsa(modulus: modulus, exponent: [])) == .malformed)
    }

    @Test func compositesWithSmallFactorsAreRefused() {
        var even = modulus
        even[even.count - 1] &= 0xFE
        #expect(error(.rsa(modulus: even, exponent: [1, 0, 1])) == .unsoundKey)
        // Divisible by 255.
        #expect(error(.rsa(modulus: [UInt8](repeating: 0xFF, count: 256), exponent: [1, 0, 1])) == .unsoundKey)
    }

    /// Only a thorough check notices a prime modulus, which a quick check accepts: 2^2048 - 1557 is one.
    @Test func aPrimeModulusIsRefusedByAThoroughCheckOnly() throws {
        let prime = [UInt8](repeating: 0xFF, count: 254) + [0xF9, 0xEB]
        #expect(error(.rsa(modulus: prime, exponent: [1, 0, 1])) == .unsoundKey)
        _ = try VerificationKey(jwk: .rsa(modulus: prime, exponent: [1, 0, 1]), check: .quick)
    }

    /// These keys are refused without knowing whether the modulus is a prime.
    @Test func aQuickCheckRefusesAsAThoroughOneDoes() {
        var even = modulus
        even[even.count - 1] &= 0xFE
        let keys: [PublicJWK] = [
            .rsa(modulus: even, exponent: [1, 0, 1]),
            .rsa(modulus: [UInt8](repeating: 0xFF, count: 256), exponent: [1, 0, 1]),
            .rsa(modulus: Array(modulus.dropFirst()), exponent: [1, 0, 1]),
            .rsa(modulus: [UInt8](repeating: 0xC1, count: 513), exponent: [1, 0, 1]),
            .rsa(modulus: modulus, exponent: [3]), .rsa(modulus: modulus, exponent: [1, 0, 0, 0, 1]),
            .rsa(modulus: [0] + modulus, exponent: [1, 0, 1]), .p256(x: [UInt8](repeating: 0, count: 32), y: []),
        ]
        for key in keys {
            var quick: CryptoError?
            do throws(CryptoError) { _ = try VerificationKey(jwk: key, check: .quick) } catch { quick = error }
            #expect(quick != nil && quick == error(key))
        }
    }

    @Test func theROCAGeneratorIsRecognized() {
        // 65537^128, as 65537 · n = (n << 16) + n: a power of 65537 modulo every prime.
        var power: [UInt8] = [1]
        for _ in 0..<128 {
            var carry = 0
            var next = power + [0, 0]
            for index in stride(from: next.count - 1, through: 0, by: -1) {
                let low = index >= 2 ? Int(power[index - 2]) : 0
                let sum = Int(next[index]) + low + carry
                next[index] = UInt8(sum & 0xFF)
                carry = sum >> 8
            }
            power = (carry > 0 ? [UInt8(carry)] : []) + next
        }
        #expect(power.count == 257)
        #expect(KeySoundness.isOfROCAGenerator(modulus: power))
        #expect(error(.rsa(modulus: power, exponent: [1, 0, 1])) == .unsoundKey)
        #expect(!KeySoundness.isOfROCAGenerator(modulus: modulus))
    }

    @Test func pointsOffTheCurveAreRefused() {
        guard case .p256(let x, let y) = RFCKeys.p256 else {
            Issue.record("the key is not of P-256")
            return
        }
        #expect(error(.p256(x: x, y: y)) == nil)
        #expect(error(.p256(x: y, y: x)) == .malformed)
        let zero = [UInt8](repeating: 0, count: 32)
        #expect(error(.p256(x: zero, y: zero)) == .malformed)
        #expect(error(.p256(x: Array(x.dropFirst()), y: y)) == .malformed)
        #expect(error(.p256(x: [0] + x, y: y)) == .malformed)
        #expect(error(.p256(x: [UInt8](repeating: 0xFF, count: 32), y: y)) == .malformed)
        #expect(error(.ed25519(x: Array(zero.dropFirst()))) == .malformed)
        #expect(error(.ed25519(x: zero + [0])) == .malformed)
    }

    /// Under the first of these keys, `[1] + 63 zeros` would be a signature of any message.
    @Test(arguments: [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0200000000000000000000000000000000000000000000000000000000000000",
    ]) func anEd25519KeyUnderWhichAnybodySignsIsRefused(point: String) throws {
        for check in [KeyCheck.thorough, .quick] {
            #expect(throws: CryptoError.unsoundKey) {
                try VerificationKey(jwk: .ed25519(x: hex(point)), check: check)
            }
        }
        #expect(error(RFCKeys.ed25519) == nil)
    }

    @Test func otherKindsOfKeysAreUnsupported() throws {
        // id-X25519; id-ecPublicKey on secp256k1 with its generator.
        let nine = [UInt8](repeating: 9, count: 32)
        let x25519 = DER.sequence(DER.sequence([0x06, 3, 0x2B, 0x65, 0x6E]), DER.bitString(nine))
        #expect(throws: CryptoError.unsupported) { try VerificationKey(spki: x25519) }
        let secp256k1 = DER.sequence(
            DER.sequence([0x06, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1, 0x06, 5, 0x2B, 0x81, 0x04, 0, 0x0A]),
            DER.bitString(
                hex(
                    "0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
                        + "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8")))
        #expect(throws: CryptoError.unsupported) { try VerificationKey(spki: secp256k1) }
    }

    @Test func nothingMayFollowAPublicKey() throws {
        let spki = try VerificationKey(jwk: RFCKeys.p256).exportSPKI()
        #expect(throws: CryptoError.malformed) { try VerificationKey(spki: spki + [0]) }
        #expect(throws: CryptoError.malformed) { try VerificationKey(spki: []) }
        for count in 0..<spki.count {
            #expect(throws: CryptoError.malformed) { try VerificationKey(spki: Array(spki[..<count])) }
        }
    }

    @Test func mutatedPublicKeysAreReadOrRefusedButNeverTrap() throws {
        var random = SeededRandom.printed()
        for (jwk, message, signature) in RFCKeys.all {
            let spki = try VerificationKey(jwk: jwk).exportSPKI()
            for _ in 0..<(jwk.algorithm == .rs256 ? 60 : 300) {
                guard let key = try? VerificationKey(spki: random.mutated(spki)) else { continue }
                #expect(key.jwk == jwk || !key.verify(signature: signature, over: message))
            }
        }
    }
}
