import Base
import Glibc
import TLS
import TestSupport
import Testing

/// Certificates that are replaced while posternd runs.
@Suite struct CertificateReloadTests {
    private static func log(_ directory: String) -> String {
        String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self)
    }

    /// Waits until the log contains the text `count` times.
    private static func wait(for text: String, count: Int = 1, in directory: String) throws {
        try blockUntil("\(text) in \(log(directory))") { log(directory).components(of: text) >= count }
    }

    @Test func `SIGHUP reads certificates, and a bad file changes nothing`() throws {
        try withTemporaryDirectory { directory in
            let folders = ["a", "b"].map { "\(directory)/\($0)" }
            for folder in folders { mkdir(folder, 0o700) }
            let (old, new) = (try TestCertificates(in: folders[0]), try TestCertificates(in: folders[1]))
            let port = try freePort()
            let process = try ChildProcess(
                ChildProcess.built("posternd"),
                [
                    "--data-directory", "\(directory)/data", "--listen-address", "127.0.0.1:\(port)",
                    "--http-address", "off", "--signing-algorithm", "ES256", "--tls-certificate-file",
                    old.certificateFile, "--tls-key-file", old.keyFile,
                ], output: "\(directory)/log")
            defer { process.kill() }
            try Self.wait(for: "\"serving\"", in: directory)
            func isTrusted(_ certificates: TestCertificates) -> Bool {
                (try? TLSClient(port: port, certificates.clientConfiguration())) != nil
            }
            #expect(isTrusted(old) && !isTrusted(new))
            // The files did not change: only SIGHUP makes the server read them all the same.
            process.send(signal: SIGHUP)
            try Self.wait(for: "certificate was read again", in: directory)
            // Replaces the files as a renewal tool does: new files take the names of the old ones.
            #expect(rename(new.keyFile, old.keyFile) == 0 && rename(new.certificateFile, old.certificateFile) == 0)
            process.send(signal: SIGHUP)
            try blockUntil("the new certificate is used") { isTrusted(new) }
            #expect(isTrusted(new) && !isTrusted(old))
            try PrivateFile.replace(old.certificateFile, with: [UInt8]("nonsense".utf8))
            process.send(signal: SIGHUP)
            try Self.wait(for: "no good, the one before stays", in: directory)
            #expect(isTrusted(new))
            process.send(signal: SIGTERM)
            #expect(process.wait(seconds: 30) == 0)
        }
    }
}

extension String {
    fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}
