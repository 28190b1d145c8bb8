import Base
public import TLS

/// The files of an authority, of a server's certificate for this machine, and of others that a test wants.
public struct TestCertificates: Sendable {
    public let directory: String
    public let authority: CertificateMaker.Made

    public var authorityFile: String { "\(directory)/ca.pem" }
    public var certificateFile: String { "\(directory)/server.pem" }
    public var keyFile: String { "\(directory)/server-key.pem" }

    /// Writes all files into `directory`.
    public init(in directory: String) throws {
        self.directory = directory
        authority = try CertificateMaker.authority(commonName: "test authority", days: 30)
        writeFile(authorityFile, authority.certificatePEM)
        try replaceServer()
    }

    /// Makes another certificate for the server, which replaces the one before.
    public func replaceServer(days: Int = 30) throws {
        let made = try CertificateMaker.leaf(
            .server, names: [.dns("localhost"), .ip("127.0.0.1"), .ip("::1")], commonName: "localhost", days: days,
            authority: authority)
        // Each file is replaced as a tool that renews certificates does it: a new file takes the place of the old one.
        try made.keyPEM.withBytes { try PrivateFile.replace(keyFile, with: [UInt8]($0)) }
        try PrivateFile.replace(certificateFile, with: made.certificatePEM)
    }

    /// A client's certificate and key, in files of this name.
    @discardableResult
    public func makeClient(_ name: String, names: [CertificateMaker.Name]) throws -> TLSCredential {
        let made = try CertificateMaker.leaf(
            // The clocks of tests differ from the machine's.
            .client, names: names, commonName: name, days: 36_500, authority: authority)
        writeFile("\(directory)/\(name).pem", made.certificatePEM)
        try made.keyPEM.withBytes { try PrivateFile.replace("\(directory)/\(name)-key.pem", with: [UInt8]($0)) }
        return try made.keyPEM.withBytes {
            try TLSCredential(certificatePEM: made.certificatePEM, keyPEM: [UInt8]($0))
        }
    }

    /// The configuration of a client that trusts the authority.
    public func clientConfiguration(_ credential: TLSCredential? = nil) throws -> ClientTLSConfiguration {
        var configuration = ClientTLSConfiguration()
        configuration.trusted = try Certificate.all(pem: authority.certificatePEM, countMax: 1)
        configuration.credential = credential
        return configuration
    }
}
