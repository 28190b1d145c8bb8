internal import COpenSSL

/// SHA-256 over bytes that come in pieces. One owner.
public struct RunningDigest: ~Copyable {
    private let context: OpaquePointer

    public init() {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, OpenSSL.sha256, nil) == 1 else {
            OpenSSL.fail("SHA-256")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1 else { OpenSSL.fail("SHA-256") }
    }

    public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// The digest of everything so far; nothing can be added afterwards.
    public consuming func finish() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Digest.byteCount) { output, initializedCount in
            guard EVP_DigestFinal_ex(context, output.baseAddress, nil) == 1 else { OpenSSL.fail("SHA-256") }
            initializedCount = Digest.byteCount
        }
    }
}
