// The checks that a key from outside must pass before it is used for anything.

import Base
import COpenSSL
import CSodium

/// How thoroughly a key from outside is checked before it is used.
public enum KeyCheck: Sendable {
    /// The quick tests, and whether an RSA modulus is a prime: 2 ms for 2048 bits, 60 ms for 4096.
    case thorough
    /// Tests sizes, exponent, small factors, the known weak generator, the point on its curve: some microseconds, for
    /// Ed25519 a tenth of a millisecond. For keys that, if weak, harm only their own issuer, and for keys that were
    /// checked thoroughly before.
    case quick
}

enum KeySoundness {
    /// The cost of checking and verifying grows with the square and the cube of the size: beyond 4096, a key would be
    /// an attack.
    static let rsaBitsRange = 2048...4096

    /// Throws `outOfRange` (size, exponent) or `unsoundKey` (point not on the curve or of small order, small factors,
    /// made by the generator of CVE-2017-15361, and for a thorough check a prime modulus).
    static func check(
        _ key: KeyHandle, _ algorithm: SigningAlgorithm, _ thoroughness: KeyCheck = .thorough
    ) throws(CryptoError) {
        if algorithm == .rs256 {
            guard rsaBitsRange.contains(Int(EVP_PKEY_get_bits(key.pointer))) else { throw .outOfRange }
            // RFC 8017 requires an odd exponent; no honest key has one below 65537 (NIST SP 800-56B) or beyond 32 bits.
            let exponent = try key.integer(OSSL_PKEY_PARAM_RSA_E)
            guard exponent.count <= 4 else { throw .outOfRange }
            let value = exponent.bigEndianNumber
            guard value >= 65_537, !value.isMultiple(of: 2) else { throw .outOfRange }
            let modulus = try key.integer(OSSL_PKEY_PARAM_RSA_N)
            if hasSmallFactor(modulus: modulus) || isOfROCAGenerator(modulus: modulus) { throw .unsoundKey }
            // OpenSSL 3.0 has no quick check of RSA keys: EVP_PKEY_public_check_quick(3) tests for primes as well.
            if thoroughness == .quick { return }
        }
        // OpenSSL takes any 32 bytes for an Ed25519 key.
        if algorithm == .edDSA, case .ed25519(let x) = try key.jwk(.edDSA), !isOfEd25519(x) { throw .unsoundKey }
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil) else {
            OpenSSL.fail("EVP_PKEY_CTX_new_from_pkey")
        }
        defer { EVP_PKEY_CTX_free(context) }
        let isSound = EVP_PKEY_public_check(context) == 1
        ERR_clear_error()
        guard isSound else { throw .unsoundKey }
    }

    /// Whether the bytes are a point of the curve's large subgroup, in its one spelling. The others are no points, or
    /// are of small order or have a part of small order. Under a key of small order anybody can sign anything, and no
    /// private key makes the others (RFC 8032 §5.1.5).
    static func isOfEd25519(_ x: [UInt8]) -> Bool {
        Sodium.start
        return x.count == 32 && crypto_core_ed25519_is_valid_point(x) == 1
    }

    static func hasSmallFactor(modulus: [UInt8]) -> Bool {
        guard let last = modulus.last, !last.isMultiple(of: 2) else { return true }
        return smallPrimes.contains { residue(of: modulus, by: $0) == 0 }
    }

    /// The Infineon generator's primes are k·M + 65537^a mod M, where M is the product of the first primes. So such a
    /// modulus is a power of 65537 modulo every small prime (Nemec et al., "The Return of Coppersmith's Attack", 2017,
    /// §2). Another modulus looks the same with a probability of about 2⁻²⁷.
    static func isOfROCAGenerator(modulus: [UInt8]) -> Bool {
        smallPrimes.allSatisfy { prime in
            let residue = residue(of: modulus, by: prime)
            var power = 1
            repeat {
                if power == residue { return true }
                power = power * 65_537 % prime
            } while power != 1
            return false
        }
    }

    private static func residue(of modulus: [UInt8], by prime: Int) -> Int {
        modulus.reduce(0) { ($0 << 8 | Int($1)) % prime }
    }

    private static let smallPrimes = [
        3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109,
        113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
    ]
}
