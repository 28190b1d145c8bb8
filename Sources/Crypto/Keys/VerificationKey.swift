public import Base
import COpenSSL

/// A public key that checks JWT signatures. Immutable; any thread. Keep it rather than make it again.
public final class VerificationKey: Sendable {
    public let algorithm: SigningAlgorithm
    public let jwk: PublicJWK
    /// SHA-256 of the key, 32 bytes (RFC 7638).
    public let thumbprint: [UInt8]

    private let key: KeyHandle
    private let contexts: KeyContextPool
    private let signatureByteCount: Int

    /// DER SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) with nothing after it.
    ///
    /// Throws `malformed` (also for a point off the curve), `unsupported`, `outOfRange` for RSA below 2048 or above
    /// 4096 bits and for an exponent below 65537, `unsoundKey` for a modulus that is known to be weak. RSA takes 2 ms
    /// and more unless `check` is quick: it is checked that the modulus is composite and has no small factors.
    public convenience init(spki: [UInt8], check: KeyCheck = .thorough) throws(CryptoError) {
        let key = try KeyHandle(spki: spki)
        let algorithm = try key.algorithm()
        try KeySoundness.check(key, algorithm, check)
        try self.init(sound: key, algorithm)
    }

    /// As `init(spki:)`. RSA numbers must not begin with a zero byte, coordinates have 32 bytes.
    public convenience init(jwk: PublicJWK, check: KeyCheck = .thorough) throws(CryptoError) {
        guard jwk.isCanonical else { throw .malformed }
        try self.init(spki: jwk.spki, check: check)
    }

    /// The public part of a key of our own. It is a copy without the private part, so a key set holds no secret.
    convenience init(publicPartOf key: KeyHandle, _ algorithm: SigningAlgorithm) throws(CryptoError) {
        try self.init(sound: try KeyHandle(spki: try key.jwk(algorithm).spki), algorithm)
    }

    private init(sound key: KeyHandle, _ algorithm: SigningAlgorithm) throws(CryptoError) {
        self.key = key
        self.algorithm = algorithm
        self.jwk = try key.jwk(algorithm)
        self.thumbprint = jwk.thumbprint
        self.contexts = KeyContextPool(key, .verify)
        self.signatureByteCount = algorithm == .rs256 ? Int(EVP_PKEY_get_size(key.pointer)) : ECDSASignature.byteCount
    }

    /// The same key with contexts and memory of its own, for a thread that should share none with others. A key that
    /// OpenSSL cannot copy is returned itself: any thread may use it.
    package func copied() -> VerificationKey {
        guard let copy = key.copied() else { return self }
        return VerificationKey(copy, of: self)
    }

    private init(_ copy: KeyHandle, of other: VerificationKey) {
        key = copy
        algorithm = other.algorithm
        jwk = other.jwk
        thumbprint = other.thumbprint
        contexts = KeyContextPool(copy, .verify)
        signatureByteCount = other.signatureByteCount
    }

    /// The first 128 bits of the thumbprint in base64url, which Postern uses as `kid`.
    public var keyID: Text { Text(unchecked: Base64.url.encode(thumbprint.prefix(16))) }

    /// The length of every `keyID`: 128 bits in base64url.
    package static let keyIDByteCount = 22

    /// DER SubjectPublicKeyInfo, as `init(spki:)` reads it.
    public func exportSPKI() -> [UInt8] { jwk.spki }

    /// Whether `signature`, in JWS form, is this key's over `message`: RS256 as long as the modulus, ES256 64 bytes
    /// r ‖ s with both in 1..<n (checked by OpenSSL), EdDSA 64 bytes. False for any other length.
    ///
    /// RS256 takes some 15 µs, ES256 60, EdDSA 100.
    public func verify(signature: UnsafeRawBufferPointer, over message: UnsafeRawBufferPointer) -> Bool {
        guard signature.count == signatureByteCount else { return false }
        let isValid =
            switch algorithm {
            case .rs256: verifyDigest(of: message, signature)
            case .es256: verifyDigest(of: message, ECDSASignature.der(signature))
            case .edDSA: verifyMessage(message, signature)
            }
        if !isValid { ERR_clear_error() }
        return isValid
    }

    public func verify(signature: [UInt8], over message: [UInt8]) -> Bool {
        signature.withUnsafeBytes { signature in message.withUnsafeBytes { verify(signature: signature, over: $0) } }
    }

    private func verifyDigest(of message: UnsafeRawBufferPointer, _ signature: [UInt8]) -> Bool {
        signature.withUnsafeBytes { verifyDigest(of: message, $0) }
    }

    private func verifyDigest(of message: UnsafeRawBufferPointer, _ signature: UnsafeRawBufferPointer) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Digest.byteCount, alignment: 8) { digest in
            Digest.sha256(message, into: digest)
            return contexts.withContext { context in
                EVP_PKEY_verify(context, signature.octets, signature.count, digest.octets, digest.count) == 1
            }
        }
    }

    /// Ed25519 hashes the message itself, twice: one call over all of it (EVP_SIGNATURE-ED25519(7)).
    private func verifyMessage(_ message: UnsafeRawBufferPointer, _ signature: UnsafeRawBufferPointer) -> Bool {
        guard let context = EVP_MD_CTX_new() else { OpenSSL.fail("EVP_MD_CTX_new") }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestVerifyInit_ex(context, nil, nil, nil, nil, key.pointer, nil) == 1 else {
            OpenSSL.fail("EVP_DigestVerifyInit_ex")
        }
        return EVP_DigestVerify(context, signature.octets, signature.count, message.octets, message.count) == 1
    }
}

extension VerificationKey: Equatable {
    public static func == (left: VerificationKey, right: VerificationKey) -> Bool { left.jwk == right.jwk }
}
