import CTLS

/// The authorities whose certificates a server's clients may show, and their revocation lists.
public struct ClientTrust: Sendable {
    public let authorities: [Certificate]
    /// If there is none, no revocation is checked.
    public let revocationLists: [RevocationList]

    static let authorityCountMax = 100

    public init(authoritiesPEM: [UInt8], revocationLists: [RevocationList] = []) throws(TLSError) {
        authorities = try Certificate.all(pem: authoritiesPEM, countMax: Self.authorityCountMax)
        self.revocationLists = revocationLists
    }
}

/// A list of the certificates that an authority revoked. Immutable, so that any thread may read it.
public final class RevocationList: @unchecked Sendable {
    // Unchecked: nothing here changes the list.
    let pointer: OpaquePointer

    /// Takes over one reference.
    private init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { X509_CRL_free(pointer) }

    /// Every list of a PEM file. Throws when there is none, or one that cannot be read.
    public static func all(pem: [UInt8]) throws(TLSError) -> [RevocationList] {
        // No limit for their number beside that of the file's size.
        try MemoryBIO.all("revocation list", in: pem, countMax: .max) { source in
            PEM_read_bio_X509_CRL(source, nil, refusePassword, nil).map(RevocationList.init(owning:))
        }
    }
}

extension TLSContext {
    /// Asks clients for a certificate, which they need not show. A certificate that is shown must be valid.
    func ask(_ trust: ClientTrust) throws(TLSError) {
        let store = SSL_CTX_get_cert_store(pointer)
        for authority in trust.authorities {
            guard X509_STORE_add_cert(store, authority.pointer) == 1,
                SSL_CTX_add_client_CA(pointer, authority.pointer) == 1
            else { throw .last(of: "an authority of clients cannot be used") }
        }
        if !trust.revocationLists.isEmpty { try add(trust.revocationLists, to: store) }
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, isGoodForClient)
    }

    private func add(_ lists: [RevocationList], to store: OpaquePointer?) throws(TLSError) {
        for list in lists {
            guard X509_STORE_add_crl(store, list.pointer) == 1 else {
                throw .last(of: "a revocation list cannot be used")
            }
        }
        // Intermediate authorities may be revoked, too: whoever has the key of a revoked authority can issue anything.
        // Proof: two constants of OpenSSL.
        X509_STORE_set_flags(store, UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL))
    }
}

/// Checks what OpenSSL does not check in a client's certificate: it must be marked for clients, and must not be an
/// authority.
private let isGoodForClient: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isGood, verification in
    guard isGood == 1, X509_STORE_CTX_get_error_depth(verification) == 0 else { return isGood }
    guard let leaf = X509_STORE_CTX_get_current_cert(verification) else { return 0 }
    // Without the extension OpenSSL says "all uses" (X509_get_extended_key_usage(3)).
    let uses = X509_get_extended_key_usage(leaf)
    let isForClients = uses != UInt32.max && uses & UInt32(XKU_SSL_CLIENT) != 0
    guard isForClients, X509_check_ca(leaf) == 0 else {
        X509_STORE_CTX_set_error(verification, X509_V_ERR_INVALID_PURPOSE)
        return 0
    }
    return 1
}
