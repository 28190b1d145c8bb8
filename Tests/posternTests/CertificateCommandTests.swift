import Base
import Glibc
import TLS
import TestSupport
import Testing

/// postern server cert, as a process of its own.
@Suite struct CertificateCommandTests {
    private static func run(_ arguments: [String], in directory: String) throws -> (status: Int32?, said: String) {
        let output = "\(directory)/said"
        let process = try ChildProcess(
            ChildProcess.built("postern"), ["server", "cert", "\(directory)"] + arguments, output: output)
        let status = process.wait(seconds: 60)
        return (status, String(decoding: readFile(output) ?? [], as: UTF8.self))
    }

    @Test func `Certificates of one authority are made, with keys for their owner alone`() throws {
        try withTemporaryDirectory { directory in
            let server = try Self.run(["--dns", "localhost,auth.internal", "--ip", "127.0.0.1"], in: directory)
            #expect(server.status == 0, "\(server.said)")
            let client = try Self.run(["--client-uri", "spiffe://example.org/mailer"], in: directory)
            #expect(client.status == 0, "\(client.said)")
            for name in ["server", "client"] {
                let (certificate, key) = ("\(directory)/\(name).pem", "\(directory)/\(name)-key.pem")
                _ = try TLSCredential(certificatePEM: readFile(certificate) ?? [], keyPEM: readFile(key) ?? [])
                let verified = try ChildProcess("openssl", ["verify", "-CAfile", "\(directory)/ca.pem", certificate])
                #expect(verified.wait() == 0)
            }
            for name in ["ca-key", "server-key", "client-key"] {
                var status = stat()
                #expect(stat("\(directory)/\(name).pem", &status) == 0)
                #expect(status.st_mode & 0o777 == 0o600)
            }
            // A key that is in use is not replaced.
            let again = try Self.run(["--dns", "localhost"], in: directory)
            #expect(again.status != 0 && again.said.contains("--name"), "\(again.said)")
        }
    }

    @Test(arguments: [[], ["--dns", "a", "--client-uri", "b"], ["--dns", "a b"], ["--dns", "a", "--name", "ca"]])
    func `What is no name of a certificate is refused`(arguments: [String]) throws {
        try withTemporaryDirectory { directory in
            let (status, said) = try Self.run(arguments, in: directory)
            #expect(status != 0, "\(said)")
        }
    }
}
