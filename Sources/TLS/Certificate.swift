import CTLS
import Glibc

/// One X.509 certificate. Immutable, so that any thread may read it.
public final class Certificate: @unchecked Sendable {
    // Unchecked: the functions that read a certificate lock the parts that OpenSSL caches (X509_check_purpose in
    // x509/v3_purp.c); nothing here changes it.
    let pointer: OpaquePointer

    /// Takes over one reference.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    /// Counts one more reference.
    convenience init(sharing pointer: OpaquePointer) {
        X509_up_ref(pointer)
        self.init(owning: pointer)
    }

    deinit { X509_free(pointer) }

    /// Every certificate of a PEM file, in order; other blocks are skipped. Throws when there is none, more than
    /// `countMax`, or one that cannot be read.
    public static func all(pem: [UInt8], countMax: Int) throws(TLSError) -> [Certificate] {
        try MemoryBIO.all("certificate", in: pem, countMax: countMax) { source in
            PEM_read_bio_X509(source, nil, refusePassword, nil).map(Certificate.init(owning:))
        }
    }

    public var isExpired: Bool { X509_cmp_time(X509_get0_notAfter(pointer), nil) < 0 }
    public var isNotYetValid: Bool { X509_cmp_time(X509_get0_notBefore(pointer), nil) > 0 }

    /// The end of its validity, in seconds since 1970.
    public var expiresAt: Int64 { Self.seconds(X509_get0_notAfter(pointer)) }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
        var (days, seconds) = (Int32(0), Int32(0))
        guard let epoch = ASN1_TIME_set(nil, 0) else { return 0 }
        defer { ASN1_TIME_free(epoch) }
        return ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 ? Int64(days) * 86_400 + Int64(seconds) : 0
    }

    /// SHA-256 of the certificate's key in X.509 form (SubjectPublicKeyInfo). It stays the same when the certificate is
    /// renewed with the same key.
    public var keyHash: [UInt8] {
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(pointer), &bytes)
        guard count > 0, let bytes else { return [] }
        defer { CRYPTO_free(bytes, "", 0) }
        var hash = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256(bytes, Int(count), &hash)
        return hash
    }
}
