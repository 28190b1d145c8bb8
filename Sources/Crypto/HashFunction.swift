public import Base
import COpenSSL

/// A hash function of other systems' passwords or of authenticator apps' codes. Do not use it for anything new: MD5
/// and SHA-1 have lost their collision resistance.
public enum HashFunction: String, Sendable, CaseIterable {
    case md5
    case sha1
    case sha256
    case sha512

    public var byteCount: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }

    /// HMAC (RFC 2104). Any thread; about 1 µs for a short message. Throws `unsupported` if OpenSSL was built or set up
    /// without the function.
    public func hmac(of message: UnsafeRawBufferPointer, key: Secret) throws(CryptoError) -> [UInt8] {
        OpenSSL.start
        var tag = [UInt8](repeating: 0, count: byteCount)
        let isMade = key.withBytes { key in
            // OpenSSL takes no key at address 0, which an empty key has.
            var none: UInt8 = 0
            return withUnsafePointer(to: &none) {
                HMAC(
                    type, key.baseAddress ?? UnsafeRawPointer($0), Int32(clamping: key.count), message.octets,
                    message.count, &tag, nil) != nil
            }
        }
        guard isMade else { throw unavailable() }
        return tag
    }

    /// Writes the digest of `bytes` to the beginning of `output`, which may be the same memory.
    func digest(_ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws(CryptoError) {
        OpenSSL.start
        // Proof: every caller's buffer has room for SHA-512.
        precondition(output.count >= byteCount, "\(output.count) bytes for a digest")
        guard EVP_Digest(bytes.baseAddress, bytes.count, output.octets, nil, type, nil) == 1 else {
            throw unavailable()
        }
    }

    var type: OpaquePointer? {
        switch self {
        case .md5: EVP_md5()
        case .sha1: EVP_sha1()
        case .sha256: EVP_sha256()
        case .sha512: EVP_sha512()
        }
    }

    private func unavailable() -> CryptoError {
        ERR_clear_error()
        return .unsupported
    }
}
