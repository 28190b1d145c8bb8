public import Base
import COpenSSL

/// A private key that signs JWTs. Immutable; any thread.
///
/// ES256 takes some 15 µs and EdDSA 40 on the caller's thread. RS256 takes 250, so use the crypto pool.
public final class SigningKey: Sendable {
    public var algorithm: SigningAlgorithm { publicKey.algorithm }
    public let publicKey: VerificationKey

    private let key: KeyHandle
    private let contexts: KeyContextPool

    /// A new key from OpenSSL's generator. RSA takes from 50 ms to a second.
    @available(*, noasync, message: "RSA takes up to a second: crypto pool only")
    public static func generate(_ algorithm: SigningAlgorithm, rsaBits: Int = 2048) -> SigningKey {
        precondition(KeySoundness.rsaBitsRange.contains(rsaBits), "RSA with \(rsaBits) bits")
        OpenSSL.start
        let name =
            switch algorithm {
            case .rs256: "RSA"
            case .es256: "EC"
            case .edDSA: "ED25519"
            }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, name, nil), EVP_PKEY_keygen_init(context) == 1 else {
            OpenSSL.fail("EVP_PKEY_keygen_init")
        }
        defer { EVP_PKEY_CTX_free(context) }
        let isSet =
            switch algorithm {
            case .rs256: EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(rsaBits)) == 1
            case .es256: EVP_PKEY_CTX_set_group_name(context, "prime256v1") == 1
            case .edDSA: true
            }
        var pointer: OpaquePointer?
        guard isSet, EVP_PKEY_generate(context, &pointer) == 1, let pointer else { OpenSSL.fail("EVP_PKEY_generate") }
        guard let key = try? SigningKey(sound: KeyHandle(owning: pointer), algorithm) else {
            OpenSSL.fail("d2i_PUBKEY")
        }
        return key
    }

    /// DER PKCS#8, unencrypted (RFC 5208), with nothing after it.
    ///
    /// Throws as `VerificationKey.init(spki:)`, and `unsoundKey` if the private part does not fit the public one.
    public convenience init(der: Secret) throws(CryptoError) {
        OpenSSL.start
        let pointer: OpaquePointer? = der.withBytes { bytes in
            var cursor = bytes.octets
            guard bytes.count <= 16_384 else { return nil }
            guard let info = d2i_PKCS8_PRIV_KEY_INFO(nil, &cursor, bytes.count) else { return nil }
            defer { PKCS8_PRIV_KEY_INFO_free(info) }
            return cursor == bytes.octets! + bytes.count ? EVP_PKCS82PKEY_ex(info, nil, nil) : nil
        }
        ERR_clear_error()
        guard let pointer else { throw .malformed }
        let key = KeyHandle(owning: pointer)
        let algorithm = try key.algorithm()
        try KeySoundness.check(key, algorithm)
        try self.init(sound: key, algorithm)
        let probe = [UInt8]("postern".utf8)
        let isFitting = signature(over: probe).map { publicKey.verify(signature: $0, over: probe) } ?? false
        ERR_clear_error()
        guard isFitting else { throw .unsoundKey }
    }

    static let ed25519SeedByteCount = 32

    /// The Ed25519 key of these 32 bytes (RFC 8032 §5.1.5): the same bytes make the same key.
    static func ed25519(seed: Secret) -> SigningKey {
        OpenSSL.start
        let pointer = seed.withBytes { EVP_PKEY_new_raw_private_key_ex(nil, "ED25519", nil, $0.octets, $0.count) }
        guard let pointer, let key = try? SigningKey(sound: KeyHandle(owning: pointer), .edDSA) else {
            // Proof: any 32 bytes are a seed, and only `MasterKey` makes them.
            OpenSSL.fail("EVP_PKEY_new_raw_private_key_ex")
        }
        return key
    }

    private init(sound key: KeyHandle, _ algorithm: SigningAlgorithm) throws(CryptoError) {
        self.key = key
        self.publicKey = try VerificationKey(publicPartOf: key, algorithm)
        self.contexts = KeyContextPool(key, .sign)
    }

    /// DER PKCS#8, as `init(der:)` reads it. The caller seals it.
    public func exportDER() -> Secret {
        guard let info = EVP_PKEY2PKCS8(key.pointer) else { OpenSSL.fail("EVP_PKEY2PKCS8") }
        defer { PKCS8_PRIV_KEY_INFO_free(info) }
        var output: UnsafeMutablePointer<UInt8>?
        let count = Int(i2d_PKCS8_PRIV_KEY_INFO(info, &output))
        guard count > 0, let output else { OpenSSL.fail("i2d_PKCS8_PRIV_KEY_INFO") }
        defer { CRYPTO_clear_free(output, count, #fileID, 0) }
        return Secret(copying: UnsafeRawBufferPointer(start: output, count: count))
    }

    /// The bytes of each signature in JWS form.
    public var signatureByteCount: Int {
        switch algorithm {
        case .rs256: Int(EVP_PKEY_get_size(key.pointer))
        case .es256, .edDSA: 64
        }
    }

    /// The signature in JWS form: RS256 as long as the modulus, ES256 and EdDSA 64 bytes.
    public func sign(_ message: UnsafeRawBufferPointer) -> [UInt8] {
        guard let signature = signature(over: message) else { OpenSSL.fail("sign") }
        return signature
    }

    public func sign(_ message: [UInt8]) -> [UInt8] { message.withUnsafeBytes { sign($0) } }

    private func signature(over message: [UInt8]) -> [UInt8]? { message.withUnsafeBytes { signature(over: $0) } }

    private func signature(over message: UnsafeRawBufferPointer) -> [UInt8]? {
        switch algorithm {
        case .rs256: signatureOfDigest(of: message, byteCountMax: Int(EVP_PKEY_get_size(key.pointer)))
        case .es256:
            signatureOfDigest(of: message, byteCountMax: ECDSASignature.derByteCountMax).map {
                ECDSASignature.raw($0[...])
            }
        case .edDSA: signatureOfMessage(message)
        }
    }

    private func signatureOfDigest(of message: UnsafeRawBufferPointer, byteCountMax: Int) -> [UInt8]? {
        withUnsafeTemporaryAllocation(byteCount: Digest.byteCount, alignment: 8) { digest in
            Digest.sha256(message, into: digest)
            var isSigned = false
            let signature = [UInt8](capacity: byteCountMax) { output in
                var count = byteCountMax
                isSigned = contexts.withContext {
                    EVP_PKEY_sign($0, output.octets, &count, digest.octets, digest.count) == 1
                }
                return isSigned ? count : 0
            }
            return isSigned ? signature : nil
        }
    }

    /// Ed25519 hashes the message itself, twice: one call over all of it (EVP_SIGNATURE-ED25519(7)).
    private func signatureOfMessage(_ message: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { OpenSSL.fail("EVP_MD_CTX_new") }
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: 64)
        var count = signature.count
        guard EVP_DigestSignInit_ex(context, nil, nil, nil, nil, key.pointer, nil) == 1,
            EVP_DigestSign(context, &signature, &count, message.octets, message.count) == 1, count == 64
        else { return nil }
        return signature
    }
}
