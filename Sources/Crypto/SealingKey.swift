public import Base
import COpenSSL

/// Seals secrets at rest with AES-256-GCM (NIST SP 800-38D): signing keys, TOTP seeds, client secrets.
///
/// Sealed bytes: version (1 byte, 1) ‖ key id (8) ‖ nonce (12, random) ‖ ciphertext ‖ tag (16). The header and the
/// caller's context are authenticated: what was sealed for one record does not open for another. Random nonces allow
/// 2³² sealings per key. Any thread.
public struct SealingKey: Sendable {
    public static let overhead = headerByteCount + nonceByteCount + tagByteCount

    /// Tells master keys apart; no secret.
    public let id: [UInt8]
    private let key: Secret
    private let sealedByteCountMax: Int

    /// Sealed values are small. Larger input is refused before any work, both at sealing and at opening.
    public static let sealedByteCountMax = 1 << 20

    private static let version: UInt8 = 1
    private static let idByteCount = 8
    private static let headerByteCount = 1 + idByteCount
    private static let nonceByteCount = 12
    private static let tagByteCount = 16

    /// Exactly 32 bytes. `sealedByteCountMax`: for data that is larger than a secret.
    public init(_ key: Secret, sealedByteCountMax: Int = Self.sealedByteCountMax) {
        self.sealedByteCountMax = sealedByteCountMax
        precondition(key.byteCount == 32, "a key of \(key.byteCount) bytes for AES-256")
        self.key = key
        let info = [UInt8]("postern sealing key id".utf8)
        self.id = HKDF.derive(key: key, info: info, count: Self.idByteCount).withBytes { [UInt8]($0) }
    }

    /// `context` names the place: tenant ‖ record type ‖ record id. Opening needs the same bytes.
    ///
    /// Throws `outOfRange` above `sealedByteCountMax`. That is the last line of defence: a caller that seals something
    /// from outside has already refused too long input, with a reason.
    public func seal(_ secret: Secret, context: [UInt8], random: RandomSource) throws(CryptoError) -> [UInt8] {
        guard secret.byteCount <= sealedByteCountMax - Self.overhead else { throw .outOfRange }
        let header = [Self.version] + id + random.bytes(Self.nonceByteCount)
        let bodyStart = header.count
        // Not byte by byte: parts of a snapshot, which are large, are sealed too.
        var sealed = [UInt8](unsafeUninitializedCapacity: secret.byteCount + Self.overhead) { buffer, count in
            count = buffer.count
            buffer.initialize(repeating: 0)
            UnsafeMutableRawBufferPointer(buffer).copyBytes(from: header)
        }
        let isSealed = sealed.withUnsafeMutableBytes { sealed in
            secret.withBytes { plain in
                withCipherContext(isSealing: true, authenticating: UnsafeRawBufferPointer(sealed), context) { cipher in
                    let body = UnsafeMutableRawBufferPointer(rebasing: sealed[bodyStart...])
                    var count: Int32 = 0
                    let tag = body.baseAddress! + plain.count
                    return EVP_EncryptUpdate(cipher, body.octets, &count, plain.octets, Int32(plain.count)) == 1
                        && EVP_EncryptFinal_ex(cipher, body.octets! + plain.count, &count) == 1
                        && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagByteCount), tag) == 1
                }
            }
        }
        guard isSealed else { OpenSSL.fail("AES-256-GCM") }
        return sealed
    }

    /// Throws `malformed`, `unsupported` (version), `unknownKey` (sealed under another key), `notAuthentic`.
    public func open(_ sealed: UnsafeRawBufferPointer, context: [UInt8]) throws(CryptoError) -> Secret {
        guard (Self.overhead...sealedByteCountMax).contains(sealed.count) else { throw .malformed }
        guard sealed[0] == Self.version else { throw .unsupported }
        let sealedUnder = sealed[1..<Self.headerByteCount]
        guard sealedUnder.elementsEqual(id) else { throw .unknownKey(id: Hex.encode(sealedUnder)) }
        let bodyStart = Self.headerByteCount + Self.nonceByteCount
        let bodyCount = sealed.count - Self.overhead
        let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: bodyCount + 1, alignment: 16)
        defer {
            OPENSSL_cleanse(plain.baseAddress, plain.count)
            plain.deallocate()
        }
        let isAuthentic = withCipherContext(isSealing: false, authenticating: sealed, context) { cipher in
            let body = UnsafeRawBufferPointer(rebasing: sealed[bodyStart...])
            // The tag is only read; OpenSSL's ctrl takes no const.
            let tag = UnsafeMutableRawPointer(mutating: body.baseAddress! + bodyCount)
            var count: Int32 = 0
            return EVP_DecryptUpdate(cipher, plain.octets, &count, body.octets, Int32(bodyCount)) == 1
                && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagByteCount), tag) == 1
                && EVP_DecryptFinal_ex(cipher, plain.octets! + bodyCount, &count) == 1
        }
        ERR_clear_error()
        guard isAuthentic else { throw .notAuthentic }
        return Secret(copying: UnsafeRawBufferPointer(rebasing: plain[..<bodyCount]))
    }

    public func open(_ sealed: [UInt8], context: [UInt8]) throws(CryptoError) -> Secret {
        try sealed.span.withUnsafeBytes { (raw) throws(CryptoError) in try open(raw, context: context) }
    }

    /// A context with key, nonce, header and `context` in it. A new one each time: sealing is rare.
    private func withCipherContext(
        isSealing: Bool, authenticating sealed: UnsafeRawBufferPointer, _ context: [UInt8],
        _ body: (OpaquePointer) -> Bool
    ) -> Bool {
        guard let cipher = EVP_CIPHER_CTX_new() else { OpenSSL.fail("EVP_CIPHER_CTX_new") }
        defer { EVP_CIPHER_CTX_free(cipher) }
        let nonce = UnsafeRawBufferPointer(rebasing: sealed[Self.headerByteCount...])
        let isReady = key.withBytes {
            EVP_CipherInit_ex2(cipher, OpenSSL.aes256GCM, $0.octets, nonce.octets, isSealing ? 1 : 0, nil) == 1
        }
        var count: Int32 = 0
        let hasHeader = EVP_CipherUpdate(cipher, nil, &count, sealed.octets, Int32(Self.headerByteCount)) == 1
        // An empty context must not reach OpenSSL as a null pointer: that would mean "no more data".
        let hasContext = context.isEmpty || EVP_CipherUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
        guard isReady, hasHeader, hasContext else { OpenSSL.fail("AES-256-GCM") }
        return body(cipher)
    }
}
