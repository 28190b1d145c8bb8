import Base
import COpenSSL

/// SHA-256 (FIPS 180-4). Any thread; about 0.1 µs for a short input.
public enum Digest {
    public static let byteCount = 32

    public static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](capacity: byteCount) { output in
            sha256(bytes, into: output)
            return byteCount
        }
    }

    public static func sha256(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { sha256($0) } }

    /// The digest of the pieces, one after the other.
    public static func sha256(of pieces: [UnsafeRawBufferPointer]) -> [UInt8] {
        [UInt8](capacity: byteCount) { output in
            let context = OpenSSL.threadDigestContext
            guard EVP_DigestInit_ex(context, OpenSSL.sha256, nil) == 1,
                pieces.allSatisfy({ EVP_DigestUpdate(context, $0.baseAddress, $0.count) == 1 }),
                EVP_DigestFinal_ex(context, output.octets, nil) == 1
            else { OpenSSL.fail("SHA-256") }
            return byteCount
        }
    }

    /// Fills `output`, which has 32 bytes, without allocating.
    public static func sha256(_ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) {
        sha256(UnsafeRawBufferPointer(start: nil, count: 0), bytes, into: output)
    }

    /// The digest of `first` followed by `second`; `output` may be one of them.
    static func sha256(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) {
        precondition(output.count >= byteCount, "\(output.count) bytes are no room for a digest")
        // Proof: a digest of memory fails only when there is none left.
        guard OpenSSL.digest(OpenSSL.sha256, of: first, second, into: output) else { OpenSSL.fail("SHA-256") }
    }
}
