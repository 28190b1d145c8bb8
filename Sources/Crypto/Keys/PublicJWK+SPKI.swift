extension PublicJWK {
    /// DER SubjectPublicKeyInfo (RFC 5280 §4.1.2.7; RFC 8017, RFC 5480, RFC 8410 for the three kinds).
    var spki: [UInt8] {
        switch self {
        case .rsa(let modulus, let exponent):
            // rsaEncryption, NULL
            let algorithm: [UInt8] = [0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 0x05, 0]
            let key = DER.sequence(DER.integer(modulus), DER.integer(exponent))
            return DER.sequence(DER.sequence(algorithm), DER.bitString(key))
        case .p256(let x, let y):
            // id-ecPublicKey, prime256v1; an uncompressed point (SEC 1 §2.3.3)
            let algorithm: [UInt8] = [
                0x06, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1, 0x06, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7,
            ]
            return DER.sequence(DER.sequence(algorithm), DER.bitString([0x04] + x + y))
        case .ed25519(let x):
            return DER.sequence(DER.sequence([0x06, 3, 0x2B, 0x65, 0x70]), DER.bitString(x))
        }
    }

    /// Whether the numbers are spelled as RFC 7518 requires: no leading zeros in RSA, 32 bytes otherwise.
    var isCanonical: Bool {
        switch self {
        case .rsa(let modulus, let exponent):
            modulus.first.map { $0 != 0 } == true && exponent.first.map { $0 != 0 } == true
        case .p256(let x, let y): x.count == 32 && y.count == 32
        case .ed25519(let x): x.count == 32
        }
    }
}
