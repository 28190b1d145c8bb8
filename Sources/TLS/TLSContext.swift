import CTLS

/// The protocol inside of TLS, by its ALPN name (RFC 7301).
public enum ApplicationProtocol: String, Sendable, CaseIterable {
    case native = "postern/1"
    case http2 = "h2"
    case http1 = "http/1.1"
}

/// The oldest version of TLS that is spoken; 1.3 is the newest.
public enum TLSVersion: String, Sendable, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"

    var number: Int32 { self == .tls12 ? TLS1_2_VERSION : TLS1_3_VERSION }
}

/// The settings that all sessions of one kind have in common: versions, algorithms, certificates. A context never
/// changes once it is made; a session keeps the context it began with.
public final class TLSContext: @unchecked Sendable {
    // Unchecked: SSL_new may be called on a context from many threads when nobody changes it (openssl-threads(7)).
    let pointer: OpaquePointer
    /// The certificate that is shown to the peer. A client may have none.
    public let certificate: Certificate?
    let role: Role

    enum Role { case server, client }

    /// Forward secrecy and AEAD only, on elliptic curves.
    private static let suitesOf13 = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    private static let suitesOf12 =
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
        + "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
    private static let groups = "X25519:P-256:P-384"
    private static let signatures =
        "ECDSA+SHA256:ECDSA+SHA384:ed25519:RSA-PSS+SHA256:RSA-PSS+SHA384:RSA-PSS+SHA512:"
        + "RSA+SHA256:RSA+SHA384:RSA+SHA512"

    /// 112 bits: RSA below 2048 bits and SHA-1 are refused, in certificates too (SSL_CTX_set_security_level(3)).
    private static let securityLevel: Int32 = 2
    /// The most intermediate certificates between a peer's certificate and a trusted one.
    static let verifyDepth: Int32 = 4

    init(
        _ role: Role, minimumVersion: TLSVersion, credential: TLSCredential?, certificateListByteCountMax: Int
    ) throws(TLSError) {
        TLSLibrary.start
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(role == .server ? TLS_server_method() : TLS_client_method()) else {
            throw .last(of: "SSL_CTX_new")
        }
        self.pointer = pointer
        self.role = role
        self.certificate = credential?.chain.first
        SSL_CTX_set_security_level(pointer, Self.securityLevel)
        guard tls_CTX_set_min_proto_version(pointer, minimumVersion.number) == 1,
            tls_CTX_set_max_proto_version(pointer, TLS1_3_VERSION) == 1,
            SSL_CTX_set_ciphersuites(pointer, Self.suitesOf13) == 1,
            SSL_CTX_set_cipher_list(pointer, Self.suitesOf12) == 1,
            tls_CTX_set1_groups_list(pointer, Self.groups) == 1,
            tls_CTX_set1_sigalgs_list(pointer, Self.signatures) == 1
        else { throw .last(of: "SSL_CTX") }
        SSL_CTX_set_options(pointer, tls_options)
        // No resumption: each session has its own keys, and each certificate is checked again.
        tls_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        SSL_CTX_set_num_tickets(pointer, 0)
        SSL_CTX_set_max_early_data(pointer, 0)
        tls_CTX_set_mode(
            pointer,
            Int(
                SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        tls_CTX_set_max_cert_list(pointer, certificateListByteCountMax)
        SSL_CTX_set_verify_depth(pointer, Self.verifyDepth)
        SSL_CTX_set_msg_callback(pointer, countKeyUpdates)
        if let credential { try use(credential) }
    }

    deinit { SSL_CTX_free(pointer) }

    private func use(_ credential: TLSCredential) throws(TLSError) {
        guard let leaf = credential.chain.first, SSL_CTX_use_certificate(pointer, leaf.pointer) == 1 else {
            throw .last(of: "the certificate cannot be used")
        }
        for issuer in credential.chain.dropFirst() where tls_CTX_add1_chain_cert(pointer, issuer.pointer) != 1 {
            throw .last(of: "a certificate of the chain cannot be used")
        }
        guard SSL_CTX_use_PrivateKey(pointer, credential.key.pointer) == 1 else {
            throw .last(of: "the key cannot be used")
        }
    }
}

/// Called for each protocol message: counts the KeyUpdates that came in (RFC 8446 §4.6.3). OpenSSL does not bound them.
private let countKeyUpdates:
    @convention(c) (
        Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
    ) -> Void = { isWritten, _, type, bytes, count, _, argument in
        guard isWritten == 0, type == SSL3_RT_HANDSHAKE, count > 0, let bytes, let argument,
            bytes.load(as: UInt8.self) == UInt8(SSL3_MT_KEY_UPDATE)
        else { return }
        let state = argument.assumingMemoryBound(to: SocketBIO.State.self)
        state.pointee.keyUpdateCount += 1
        if state.pointee.keyUpdateCount > state.pointee.keyUpdateCountMax { state.pointee.isStopped = true }
    }
