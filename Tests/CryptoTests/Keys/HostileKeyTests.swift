import Base
import Testing

@testable import Crypto

/// Keys that an attacker made to break the reader: each is refused or works, and none ends the process.
@Suite struct HostileKeyTests {
    private static let rsaAlgorithm: [UInt8] = [0x30, 0x0D, 0x06, 0x09] + hex("2a864886f70d010101") + [0x05, 0x00]
    private static let p256Algorithm: [UInt8] =
        [0x30, 0x13, 0x06, 0x07] + hex("2a8648ce3d0201") + [0x06, 0x08] + hex("2a8648ce3d030107")

    private static func spki(modulus: [UInt8], exponent: [UInt8]) -> [UInt8] {
        DER.sequence(
            rsaAlgorithm, DER.bitString(DER.sequence(DER.element(0x02, modulus), DER.element(0x02, exponent))))
    }

    @Test func anRSAKeyOfOddNumbersIsRefused() throws {
        guard case .rsa(let sound, _) = RFCKeys.rsa else {
            Issue.record("the key is not of RSA")
            return
        }
        let modulus = [0] + sound
        for (modulus, exponent) in [
            (modulus, [0]), (modulus, [1]), (modulus, [3]), (modulus, []), ([], [1, 0, 1]), ([0], [1, 0, 1]),
            ([0xFF], [1, 0, 1]), (modulus, [1, 0, 0]), (modulus, [0] + [UInt8](repeating: 0xFF, count: 2_000)),
        ] as [([UInt8], [UInt8])] {
            #expect(throws: CryptoError.self, "\(modulus.count), \(exponent.prefix(4))") {
                try VerificationKey(spki: Self.spki(modulus: modulus, exponent: exponent))
            }
        }
        let key = try VerificationKey(spki: Self.spki(modulus: modulus, exponent: [1, 0, 1]))
        // OpenSSL reads a number without its sign: the key is the same, under the same id.
        let unsigned = try VerificationKey(spki: Self.spki(modulus: sound, exponent: [1, 0, 1]))
        #expect(unsigned.keyID == key.keyID)
    }

    @Test func aPointThatIsNoneIsRefused() {
        for point in [
            [], [0], [4], [4] + [UInt8](repeating: 0, count: 64), [4] + [UInt8](repeating: 0xFF, count: 64),
            [2] + [UInt8](repeating: 0xFF, count: 32), [4] + [UInt8](repeating: 1, count: 63),
        ] as [[UInt8]] {
            let spki = DER.sequence(Self.p256Algorithm, DER.bitString(point))
            #expect(throws: CryptoError.self) { try VerificationKey(spki: spki) }
        }
    }

    /// Changes each byte of each key in five ways. Of RSA keys, only the bytes around the numbers are changed,
    /// because checking a key that was changed inside takes milliseconds.
    @Test func noChangedByteOfAKeyIsATrap() throws {
        var count = 0
        for algorithm in [SigningAlgorithm.es256, .edDSA, .rs256] {
            let key = SigningKey.generate(algorithm)
            let (spki, secret) = (key.publicKey.exportSPKI(), key.exportDER().withBytes { [UInt8]($0) })
            for (bytes, isPrivate) in [(spki, false), (secret, true)] {
                for index in bytes.indices where algorithm != .rs256 || index < 48 || index > bytes.count - 8 {
                    for value in [bytes[index] ^ 1, bytes[index] ^ 0x80, 0, 0xFF, bytes[index] &+ 1] {
                        var changed = bytes
                        changed[index] = value
                        if isPrivate {
                            _ = try? SigningKey(der: Secret(changed)).sign([1, 2, 3])
                        } else {
                            _ = try? VerificationKey(spki: changed).keyID
                        }
                        count += 1
                    }
                }
            }
        }
        #expect(count > 1_500, "\(count) keys")
    }

    @Test func noCutKeyIsATrap() {
        for algorithm in [SigningAlgorithm.es256, .edDSA, .rs256] {
            let key = SigningKey.generate(algorithm)
            let (spki, secret) = (key.publicKey.exportSPKI(), key.exportDER().withBytes { [UInt8]($0) })
            for count in spki.indices {
                #expect(throws: CryptoError.self) { try VerificationKey(spki: Array(spki[..<count])) }
            }
            for count in secret.indices {
                #expect(throws: CryptoError.self) { try SigningKey(der: Secret(Array(secret[..<count]))) }
            }
        }
    }
}
