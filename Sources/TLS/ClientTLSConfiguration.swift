import CTLS

/// The settings of a client's TLS.
public struct ClientTLSConfiguration: Sendable {
    /// The certificates to trust instead of the system's. Empty: the system's.
    public var trusted: [Certificate] = []
    /// The certificate and key that the client shows to a server that asks for them.
    public var credential: TLSCredential?
    /// The protocol that the client speaks inside TLS.
    public var applicationProtocol = ApplicationProtocol.native

    public init() {}

    static let certificateListByteCountMax = 64 * 1024
}

extension TLSContext {
    /// A client's context, which always verifies the server's certificate.
    public convenience init(_ configuration: ClientTLSConfiguration) throws(TLSError) {
        try self.init(
            .client, minimumVersion: .tls12, credential: configuration.credential,
            certificateListByteCountMax: ClientTLSConfiguration.certificateListByteCountMax)
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        if configuration.trusted.isEmpty {
            guard SSL_CTX_set_default_verify_paths(pointer) == 1 else { throw .last(of: "the system's certificates") }
        } else {
            let store = SSL_CTX_get_cert_store(pointer)
            for certificate in configuration.trusted where X509_STORE_add_cert(store, certificate.pointer) != 1 {
                throw .last(of: "a trusted certificate cannot be used")
            }
        }
        let name = [UInt8](configuration.applicationProtocol.rawValue.utf8)
        let names = [UInt8(truncatingIfNeeded: name.count)] + name
        // Unlike the functions above, this one returns 0 for success.
        guard SSL_CTX_set_alpn_protos(pointer, names, UInt32(clamping: names.count)) == 0 else {
            throw .last(of: "ALPN")
        }
    }
}

extension TLSSession {
    /// Makes the handshake check the server's certificate for `name`, a host name or a numeric address. Called before
    /// the first read.
    public func verifyServer(named name: String) throws(TLSError) {
        let parameters = SSL_get0_param(pointer)
        if X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1 { return }
        ERR_clear_error()
        // The common name never counts, and "*" stands for a whole label.
        X509_VERIFY_PARAM_set_hostflags(
            parameters, UInt32(bitPattern: X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        // OpenSSL takes a name with a leading dot as "any name below it".
        guard !name.isEmpty, name.utf8.first != UInt8(ascii: "."),
            X509_VERIFY_PARAM_set1_host(parameters, name, name.utf8.count) == 1, tls_set_host_name(pointer, name) == 1
        else { throw .last(of: "\"\(name)\" is no host name") }
    }

    /// The reason why the server's certificate was refused; nil if it was not.
    public var refusedCertificate: String? {
        let code = SSL_get_verify_result(pointer)
        return code == Int(X509_V_OK) ? nil : String(cString: X509_verify_cert_error_string(code))
    }
}
