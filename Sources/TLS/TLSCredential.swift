/// A certificate, the certificates that lead from it to a trusted one, and its private key.
public struct TLSCredential: Sendable {
    /// The holder's certificate first, then its issuers.
    public let chain: [Certificate]
    public let key: PrivateKey

    /// The most certificates of a file.
    static let chainCountMax = 10

    /// Throws for a file that cannot be read, a key that belongs to another certificate, and a certificate that has
    /// expired.
    public init(certificatePEM: [UInt8], keyPEM: [UInt8]) throws(TLSError) {
        chain = try Certificate.all(pem: certificatePEM, countMax: Self.chainCountMax)
        key = try PrivateKey(pem: keyPEM)
        guard let leaf = chain.first, key.belongs(to: leaf) else {
            throw TLSError("the key does not belong to the first certificate")
        }
        guard !leaf.isExpired else { throw TLSError("the certificate has expired") }
    }
}
