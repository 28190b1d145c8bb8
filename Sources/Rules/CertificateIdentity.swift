public import Base

/// The holder of a certificate: a name that the authority wrote into it, and the authority, known by its key. The
/// common name does not matter, nor does the signer of the authority.
public struct CertificateIdentity: Sendable, Equatable {
    public enum Name: Sendable, Equatable {
        case uri(Text)
        case dns(Text)
    }

    public let name: Name
    /// SHA-256 of the SubjectPublicKeyInfo of the certificate that issued the holder's.
    public let issuerKeyHash: [UInt8]

    /// SPIFFE's bound for an id.
    public static let uriByteCountMax = 2_048
    /// RFC 1035 §2.3.4.
    public static let dnsByteCountMax = 253

    /// INVALID_CERTIFICATE_MAPPING for a name that cannot identify a certificate: not of printable ASCII, too long, or
    /// a pattern. Names are compared byte by byte.
    public init(_ name: Name, issuerKeyHash: [UInt8]) throws(Failure) {
        let (bytes, field, most) =
            switch name {
            case .uri(let uri): (uri.bytes, "uri", Self.uriByteCountMax)
            case .dns(let dnsName): (dnsName.bytes, "dns_name", Self.dnsByteCountMax)
            }
        guard !bytes.isEmpty, bytes.count <= most,
            bytes.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "*") })
        else {
            throw .invalid(
                .invalidCertificateMapping, field: field,
                "must be 1 to \(most) characters of printable ASCII, without * and spaces")
        }
        self.name = name
        self.issuerKeyHash = issuerKeyHash
    }
}

/// A certificate that a client showed and that one of the server's authorities vouches for.
public struct ClientCertificate: Sendable, Equatable {
    public let identity: CertificateIdentity
    public let expiresAt: Timestamp

    public init(identity: CertificateIdentity, expiresAt: Timestamp) {
        self.identity = identity
        self.expiresAt = expiresAt
    }
}
