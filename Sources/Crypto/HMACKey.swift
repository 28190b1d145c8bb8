public import Base

/// A key of HMAC-SHA256 (RFC 2104), ready for use by any number of threads.
///
/// A tag is computed as two plain digests over the padded key, in the thread's digest context. To be as fast, OpenSSL's
/// EVP_MAC needs a context per key and thread (two digests: 0.24 µs; a duplicated EVP_MAC_CTX: 0.65 µs).
public struct HMACKey: Sendable {
    public static let tagByteCount = Digest.byteCount

    /// The key xor ipad, then the key xor opad: 64 bytes each.
    private let pads: Secret

    /// The key may have any length; 32 random bytes are right.
    public init(_ key: Secret) {
        self.pads = withWipedScratch(byteCount: 128) { scratch in
            scratch.initializeMemory(as: UInt8.self, repeating: 0)
            key.withBytes { bytes in
                if bytes.count > 64 { Digest.sha256(bytes, into: scratch) } else { scratch.copyMemory(from: bytes) }
            }
            scratch.makeHMACPads()
            return Secret(copying: UnsafeRawBufferPointer(scratch))
        }
    }

    /// Writes the 32-byte tag into `output`, which must not overlap `message`.
    public func writeTag(of message: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) {
        pads.withBytes { pads in
            Digest.sha256(UnsafeRawBufferPointer(rebasing: pads[..<64]), message, into: output)
            let inner = UnsafeRawBufferPointer(rebasing: output[..<Digest.byteCount])
            Digest.sha256(UnsafeRawBufferPointer(rebasing: pads[64...]), inner, into: output)
        }
    }

    public func tag(of message: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](capacity: Self.tagByteCount) { output in
            writeTag(of: message, into: output)
            return Self.tagByteCount
        }
    }

    public func tag(of message: [UInt8]) -> [UInt8] { message.withUnsafeBytes { tag(of: $0) } }

    /// Compares in constant time; false for any other length than 32.
    public func isValid(tag: UnsafeRawBufferPointer, of message: UnsafeRawBufferPointer) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Self.tagByteCount, alignment: 8) { expected in
            writeTag(of: message, into: expected)
            return constantTimeEqual(tag, UnsafeRawBufferPointer(expected))
        }
    }

    public func isValid(tag: [UInt8], of message: [UInt8]) -> Bool {
        tag.withUnsafeBytes { tag in message.withUnsafeBytes { isValid(tag: tag, of: $0) } }
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Replaces the key of HMAC in the first 64 bytes, with zeros behind it, by the two keys of RFC 2104: the key xor
    /// ipad, and in the next 64 bytes the key xor opad.
    func makeHMACPads() {
        for index in 0..<64 {
            self[64 + index] = self[index] ^ 0x5C
            self[index] ^= 0x36
        }
    }
}
