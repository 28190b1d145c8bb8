import Base
import TLS
import TestSupport
import Testing

/// Certificates and keys as files have them, and as they are made.
@Suite struct CertificateTests {
    @Test func `What is made can be read, and belongs together`() throws {
        let authority = try CertificateMaker.authority(commonName: "authority", days: 10)
        let made = try CertificateMaker.leaf(
            .client, names: [.uri("spiffe://example.org/mailer")], commonName: "mailer", days: 2, authority: authority)
        let certificates = try Certificate.all(pem: made.certificatePEM + authority.certificatePEM, countMax: 2)
        #expect(certificates.count == 2)
        let key = try made.keyPEM.withBytes { try PrivateKey(pem: [UInt8]($0)) }
        #expect(key.belongs(to: certificates[0]))
        #expect(!key.belongs(to: certificates[1]))
        #expect(certificates[0].keyHash != certificates[1].keyHash)
        #expect(certificates[0].keyHash.count == 32)
        #expect(certificates[1].expiresAt - certificates[0].expiresAt == 8 * 86_400)
        #expect(throws: TLSError.self) {
            try Certificate.all(pem: made.certificatePEM + authority.certificatePEM, countMax: 1)
        }
    }

    @Test(arguments: ["a,DNS:b", "", "a b", "a;b", "é", "a\u{0}", "@section", String(repeating: "a", count: 256)])
    func `A name that would mean something else in a certificate is refused`(name: String) throws {
        let authority = try CertificateMaker.authority(commonName: "authority", days: 10)
        guard !name.isEmpty else { return }
        #expect(throws: TLSError.self) {
            try CertificateMaker.leaf(.server, names: [.dns(name)], commonName: "a", days: 1, authority: authority)
        }
    }

    @Test func `What is no certificate and no key is refused`() throws {
        let made = try CertificateMaker.authority(commonName: "authority", days: 10)
        let half = Array(made.certificatePEM.prefix(made.certificatePEM.count / 2))
        for bytes in [[], half, [UInt8]("nonsense".utf8)] {
            #expect(throws: TLSError.self) { try Certificate.all(pem: bytes, countMax: 1) }
            #expect(throws: TLSError.self) { try PrivateKey(pem: bytes) }
        }
    }
}
