// What a key from outside must fulfil before it is used for anything.

import COpenSSL

enum KeySoundness {
    /// Checking and verifying grow with the square and the cube of the size: beyond 4096 they would be an attack.
    static let rsaBitsRange = 2048...4096

    /// Throws `outOfRange` (size, exponent) or `unsoundKey` (point not on the curve, composite with small factors, made
    /// by the generator of CVE-2017-15361).
    static func check(_ key: KeyHandle, _ algorithm: SigningAlgorithm) throws(CryptoError) {
        if algorithm == .rs256 {
            guard rsaBitsRange.contains(Int(EVP_PKEY_get_bits(key.pointer))) else { throw .outOfRange }
            // RFC 8017 wants it odd; below 65537 (NIST SP 800-56B) or beyond 32 bits nobody honest has one.
            let exponent = key.integer(OSSL_PKEY_PARAM_RSA_E)
            guard exponent.count <= 4 else { throw .outOfRange }
            let value = exponent.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            guard value >= 65_537, !value.isMultiple(of: 2) else { throw .outOfRange }
            if isOfROCAGenerator(modulus: key.integer(OSSL_PKEY_PARAM_RSA_N)) { throw .unsoundKey }
        }
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil) else {
            OpenSSL.fail("EVP_PKEY_CTX_new_from_pkey")
        }
        defer { EVP_PKEY_CTX_free(context) }
        let isSound = EVP_PKEY_public_check(context) == 1
        ERR_clear_error()
        guard isSound else { throw .unsoundKey }
    }

    /// The Infineon generator's primes are k·M + 65537^a mod M, M being the product of the first primes: such a modulus
    /// is a power of 65537 modulo every small prime (Nemec et al., "The Return of Coppersmith's Attack", 2017, §2).
    /// Another modulus passes for one with a probability of about 2⁻²⁷.
    static func isOfROCAGenerator(modulus: [UInt8]) -> Bool {
        smallPrimes.allSatisfy { prime in
            let residue = modulus.reduce(0) { ($0 << 8 | Int($1)) % prime }
            var power = 1
            repeat {
                if power == residue { return true }
                power = power * 65_537 % prime
            } while power != 1
            return false
        }
    }

    private static let smallPrimes = [
        3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109,
        113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
    ]
}
