public import Base
import CTLS

/// Makes certificates for development and tests: an authority, and certificates that it signed. P-256 and SHA-256.
public enum CertificateMaker {
    /// A certificate and its key, in PEM.
    public struct Made: Sendable {
        public let certificatePEM: [UInt8]
        public let keyPEM: Secret

        public init(certificatePEM: [UInt8], keyPEM: Secret) {
            self.certificatePEM = certificatePEM
            self.keyPEM = keyPEM
        }
    }

    public enum Name: Sendable, Equatable {
        case dns(String)
        case ip(String)
        case uri(String)

        /// In the form of OpenSSL's configuration (x509v3_config(5)).
        fileprivate var text: String {
            switch self {
            case .dns(let name): "DNS:\(name)"
            case .ip(let address): "IP:\(address)"
            case .uri(let uri): "URI:\(uri)"
            }
        }

        /// Whether the name contains nothing of the configuration's own syntax, in which a comma begins the next name.
        fileprivate var isPlain: Bool {
            text.utf8.count <= 256
                && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !",;\"'\\$#@".utf8.contains($0) }
        }
    }

    public enum Use: Sendable { case server, client }

    /// An authority that signs itself.
    public static func authority(commonName: String, days: Int) throws(TLSError) -> Made {
        let key = try PrivateKey.generate()
        let certificate = try certificate(of: key, commonName: commonName, days: days)
        X509_set_issuer_name(certificate.pointer, X509_get_subject_name(certificate.pointer))
        try add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0", to: certificate, issuer: certificate)
        try add(NID_key_usage, "critical,keyCertSign,cRLSign", to: certificate, issuer: certificate)
        try add(NID_subject_key_identifier, "hash", to: certificate, issuer: certificate)
        return try signed(certificate, by: key, key: key)
    }

    /// A certificate for a server or a client, signed by the authority.
    public static func leaf(
        _ use: Use, names: [Name], commonName: String, days: Int, authority: Made
    ) throws(TLSError) -> Made {
        guard !names.isEmpty, names.allSatisfy(\.isPlain) else {
            throw TLSError("a certificate needs names of printable characters, without any of , ; \" ' \\ $ # @")
        }
        guard let issuer = try Certificate.all(pem: authority.certificatePEM, countMax: 1).first else {
            throw TLSError("there is no authority")
        }
        let issuerKey = try authority.keyPEM.withBytes { bytes throws(TLSError) in try PrivateKey(pem: [UInt8](bytes)) }
        let key = try PrivateKey.generate()
        let certificate = try certificate(of: key, commonName: commonName, days: days)
        X509_set_issuer_name(certificate.pointer, X509_get_subject_name(issuer.pointer))
        try add(NID_basic_constraints, "critical,CA:FALSE", to: certificate, issuer: issuer)
        try add(NID_key_usage, "critical,digitalSignature", to: certificate, issuer: issuer)
        try add(NID_ext_key_usage, use == .server ? "serverAuth" : "clientAuth", to: certificate, issuer: issuer)
        let list = names.map(\.text).joined(separator: ",")
        try add(NID_subject_alt_name, list, to: certificate, issuer: issuer)
        try add(NID_subject_key_identifier, "hash", to: certificate, issuer: issuer)
        try add(NID_authority_key_identifier, "keyid:always", to: certificate, issuer: issuer)
        return try signed(certificate, by: issuerKey, key: key)
    }

    private static func certificate(of key: PrivateKey, commonName: String, days: Int) throws(TLSError) -> Certificate {
        TLSLibrary.start
        ERR_clear_error()
        guard let pointer = X509_new() else { throw .last(of: "X509_new") }
        let certificate = Certificate(owning: pointer)
        let serial = BN_new()
        defer { BN_free(serial) }
        // 159 random bits: positive, and at most 20 bytes (RFC 5280 §4.1.2.2).
        guard BN_rand(serial, 159, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1,
            BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(pointer)) != nil,
            X509_set_version(pointer, Int(X509_VERSION_3)) == 1, X509_set_pubkey(pointer, key.pointer) == 1,
            // An hour back, for clocks that are behind.
            X509_gmtime_adj(X509_getm_notBefore(pointer), -3_600) != nil,
            X509_time_adj_ex(X509_getm_notAfter(pointer), Int32(clamping: days), 0, nil) != nil,
            X509_NAME_add_entry_by_NID(
                X509_get_subject_name(pointer), NID_commonName, MBSTRING_UTF8, [UInt8](commonName.utf8),
                Int32(clamping: commonName.utf8.count), -1, 0) == 1
        else { throw .last(of: "a certificate cannot be made") }
        return certificate
    }

    private static func add(
        _ id: Int32, _ value: String, to certificate: Certificate, issuer: Certificate
    ) throws(TLSError) {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer.pointer, certificate.pointer, nil, nil, 0)
        guard let entry = X509V3_EXT_conf_nid(nil, &context, id, value) else { throw .last(of: value) }
        defer { X509_EXTENSION_free(entry) }
        guard X509_add_ext(certificate.pointer, entry, -1) == 1 else { throw .last(of: value) }
    }

    private static func signed(
        _ certificate: Certificate, by issuerKey: PrivateKey, key: PrivateKey
    ) throws(TLSError) -> Made {
        guard X509_sign(certificate.pointer, issuerKey.pointer, EVP_sha256()) > 0 else {
            throw .last(of: "the certificate cannot be signed")
        }
        let target = try MemoryBIO()
        guard PEM_write_bio_X509(target.pointer, certificate.pointer) == 1 else {
            throw .last(of: "PEM_write_bio_X509")
        }
        return Made(certificatePEM: target.bytes, keyPEM: try key.pem())
    }
}
