import Base
import Glibc
import TLS

/// postern server cert: a private authority, and certificates that it signs, for development and small installations.
enum CertificateCommands {
    private static let daysFlag = Flag("days", "N", "how long the certificate is valid (default 90)")
    private static let authorityDays = 3_650

    static let make = Command(
        path: ["server", "cert"],
        summary: "Makes a certificate of a development authority, which it makes too: ca.pem, NAME.pem, NAME-key.pem.",
        example: "server cert certs --dns localhost,auth.internal --ip 127.0.0.1",
        operands: [.required("directory")],
        flags: [
            Flag("name", "NAME", "the files' name (default \"server\", of clients \"client\")"),
            Flag("dns", "NAMES", "the server's host names, with commas between them"),
            Flag("ip", "ADDRESSES", "the server's addresses, with commas between them"),
            Flag(
                "client-uri", "URI", "makes a client's certificate with this URI, such as spiffe://example.org/mailer"),
            Flag("client-dns", "NAME", "makes a client's certificate with this DNS name"),
            daysFlag,
        ], isReadOnly: true, prints: .noRecords
    ) { session in
        let arguments = session.arguments
        let directory = arguments.operands[0]
        try File.checkName(directory)
        let (use, names) = try names(in: arguments)
        let name = arguments.value("name") ?? (use == .server ? "server" : "client")
        guard !name.isEmpty, !name.contains("/"), name != "ca" else {
            throw CommandError.usage("--name is a file's name, and not \"ca\"")
        }
        let days = try arguments.integer("days", in: 1...3_650) ?? 90
        // The directory holds keys: if it is new, it is for its owner alone.
        _ = mkdir(directory, 0o700)
        do {
            let authority = try authority(in: directory)
            let made = try CertificateMaker.leaf(
                use, names: names, commonName: name, days: Int(days), authority: authority)
            let paths = ("\(directory)/\(name).pem", "\(directory)/\(name)-key.pem")
            try made.keyPEM.withBytes { try PrivateFile.create(paths.1, [UInt8]($0)) }
            try PrivateFile.replace(paths.0, with: made.certificatePEM)
            session.say("made \(paths.0) and \(paths.1), vouched for by \(directory)/ca.pem")
        } catch let error as TLSError {
            throw CommandError("\(error)")
        } catch let error as FileError {
            throw CommandError("\(error)", hint: "a key that is there is not overwritten: --name names another file")
        }
    }

    private static func names(
        in arguments: Arguments
    ) throws(CommandError) -> (CertificateMaker.Use, [CertificateMaker.Name]) {
        let hosts = try arguments.elements("dns") ?? []
        let addresses = try arguments.elements("ip") ?? []
        let server = hosts.map { CertificateMaker.Name.dns($0) } + addresses.map { .ip($0) }
        let client =
            (arguments.value("client-uri").map { [CertificateMaker.Name.uri($0)] } ?? [])
            + (arguments.value("client-dns").map { [.dns($0)] } ?? [])
        guard server.isEmpty != client.isEmpty else {
            throw .usage("name a server (--dns, --ip) or a client (--client-uri, --client-dns)")
        }
        return client.isEmpty ? (.server, server) : (.client, client)
    }

    /// The authority of the directory. If there is none, it is made, with a key that only its owner can read.
    private static func authority(in directory: String) throws -> CertificateMaker.Made {
        let (certificate, key) = ("\(directory)/ca.pem", "\(directory)/ca-key.pem")
        if File.exists(key) {
            return CertificateMaker.Made(certificatePEM: try File.read(certificate), keyPEM: Secret(try File.read(key)))
        }
        let made = try CertificateMaker.authority(commonName: "Postern development authority", days: authorityDays)
        try made.keyPEM.withBytes { try PrivateFile.create(key, [UInt8]($0)) }
        try PrivateFile.replace(certificate, with: made.certificatePEM)
        return made
    }
}
