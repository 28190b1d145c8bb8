public import Base
import CTLS

/// The identity in a verified certificate of a peer: one name of the subjectAltName, and the authority.
public struct PeerCertificate: Sendable, Equatable {
    public enum Name: Sendable, Equatable {
        case uri(Text)
        case dns(Text)
    }

    public let name: Name
    /// SHA-256 of the key of the certificate that issued it.
    public let issuerKeyHash: [UInt8]
    /// In seconds since 1970.
    public let expiresAt: Int64

    private static let namesMax = 64

    /// Nil for a certificate that names nobody: it has more than one URI, or no URI and not exactly one DNS name, or a
    /// name has characters that no name has. SPIFFE asks for exactly one URI as well (X.509-SVID §2).
    init?(leaf: Certificate, issuer: Certificate) {
        guard let names = Self.names(of: leaf) else { return nil }
        if names.uris.count == 1 {
            name = .uri(names.uris[0])
        } else if names.uris.isEmpty, names.dnsNames.count == 1 {
            name = .dns(names.dnsNames[0])
        } else {
            return nil
        }
        issuerKeyHash = issuer.keyHash
        expiresAt = leaf.expiresAt
        guard issuerKeyHash.count == 32 else { return nil }
    }

    private static func names(of leaf: Certificate) -> (uris: [Text], dnsNames: [Text])? {
        guard let found = X509_get_ext_d2i(leaf.pointer, NID_subject_alt_name, nil, nil) else { return nil }
        let list = OpaquePointer(found)
        defer { GENERAL_NAMES_free(list) }
        var (uris, dnsNames): ([Text], [Text]) = ([], [])
        let count = tls_NAME_count(list)
        guard count <= namesMax else { return nil }
        for index in 0..<count {
            var type: Int32 = 0
            guard let name = tls_NAME_at(list, index), let value = GENERAL_NAME_get0_value(name, &type) else {
                return nil
            }
            guard type == GEN_URI || type == GEN_DNS else { continue }
            let string = value.assumingMemoryBound(to: ASN1_STRING.self)
            let bytes = Array(
                UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
            // The type of these names is ASCII. A NUL or a space in a name is there so that others read it differently.
            guard bytes.allSatisfy({ (0x21...0x7E).contains($0) }), let text = Text(validating: bytes) else {
                return nil
            }
            if type == GEN_URI { uris.append(text) } else { dnsNames.append(text) }
        }
        return (uris, dnsNames)
    }
}

extension TLSSession {
    /// The identity in the client's certificate; nil if the client showed none, or one that names nobody.
    public var peerCertificate: PeerCertificate? {
        guard isEstablished, SSL_get_verify_result(pointer) == Int(X509_V_OK),
            let chain = tls_get_verified_chain(pointer), tls_X509_count(chain) >= 2,
            let leaf = tls_X509_at(chain, 0), let issuer = tls_X509_at(chain, 1)
        else { return nil }
        return PeerCertificate(leaf: Certificate(sharing: leaf), issuer: Certificate(sharing: issuer))
    }
}
