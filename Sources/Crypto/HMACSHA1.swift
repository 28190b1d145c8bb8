public import Base

/// HMAC-SHA1 (RFC 2104), only for the codes of authenticator apps: RFC 4226 requires it, and its proofs do not need the
/// collision resistance that SHA-1 lost.
public enum HMACSHA1 {
    public static let tagByteCount = 20

    /// `key` has at most 64 bytes. Any thread; about 0.4 µs for a short message.
    public static func tag(of message: UnsafeRawBufferPointer, key: Secret) -> [UInt8] {
        // Proof: every secret is one that TOTP made, with 20 bytes.
        precondition(key.byteCount <= 64, "a key of \(key.byteCount) bytes for HMAC-SHA1")
        return withWipedScratch(byteCount: 128 + tagByteCount) { scratch in
            scratch.initializeMemory(as: UInt8.self, repeating: 0)
            key.withBytes { scratch.copyMemory(from: $0) }
            scratch.makeHMACPads()
            let inner = UnsafeRawBufferPointer(rebasing: scratch[..<64])
            let outer = UnsafeRawBufferPointer(rebasing: scratch[64..<128])
            let digest = UnsafeMutableRawBufferPointer(rebasing: scratch[128...])
            sha1(inner, message, into: digest)
            sha1(outer, UnsafeRawBufferPointer(digest), into: digest)
            return [UInt8](digest)
        }
    }

    private static func sha1(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) {
        // Proof: a digest of memory fails only when there is none left.
        guard OpenSSL.digest(OpenSSL.sha1, of: first, second, into: output) else { OpenSSL.fail("SHA-1") }
    }
}
