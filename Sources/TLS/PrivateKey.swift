public import Base
import CTLS

/// The private key of a certificate. Immutable.
public final class PrivateKey: @unchecked Sendable {
    // Unchecked: an EVP_PKEY may be used by many threads that do not change it (openssl-threads(7)).
    let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { EVP_PKEY_free(pointer) }

    /// The first private key of a PEM file, without a password.
    public init(pem: [UInt8]) throws(TLSError) {
        TLSLibrary.start
        ERR_clear_error()
        let source = try MemoryBIO(reading: pem)
        guard let pointer = PEM_read_bio_PrivateKey(source.pointer, nil, refusePassword, nil) else {
            ERR_clear_error()
            throw TLSError("there is no private key in it that can be read without a password")
        }
        self.pointer = pointer
    }

    /// A new P-256 key.
    public static func generate() throws(TLSError) -> PrivateKey {
        TLSLibrary.start
        guard let pointer = tls_generate_p256() else { throw .last(of: "EVP_EC_gen") }
        return PrivateKey(owning: pointer)
    }

    /// PKCS #8 in PEM.
    public func pem() throws(TLSError) -> Secret {
        let target = try MemoryBIO()
        guard PEM_write_bio_PKCS8PrivateKey(target.pointer, pointer, nil, nil, 0, nil, nil) == 1 else {
            throw .last(of: "PEM_write_bio_PKCS8PrivateKey")
        }
        return Secret(target.bytes)
    }

    /// The length of an RSA key's modulus. The number of other kinds of keys is below 600.
    public var bitCount: Int { Int(EVP_PKEY_get_bits(pointer)) }

    /// Whether this is the private half of the certificate's key.
    public func belongs(to certificate: Certificate) -> Bool {
        defer { ERR_clear_error() }
        return X509_check_private_key(certificate.pointer, pointer) == 1
    }
}
