import Base
import Messages
import TLS
import TestSupport
import Testing

/// A stock gRPC client (grpcio) against a real server; its cases are in Tests/Fixtures/GRPC/grpc_client.py.
@Suite struct GRPCClientTests {
    @Test func `A stock client makes every kind of call, and gets every kind of answer`() async throws {
        try await withServer { server in
            try Self.runCases(["127.0.0.1:\(server.port)", "--key-file", Self.keyFile(server)], server)
        }
    }

    @Test func `The same over TLS, with an API key`() async throws {
        try await CertificateMappingTests.withTLS { server, port, certificates in
            let words = ["--key-file", Self.keyFile(server), "--ca-file", certificates.authorityFile]
            try Self.runCases(["127.0.0.1:\(port)"] + words, server)
        }
    }

    @Test func `The same over TLS, with a certificate that is mapped to a role`() async throws {
        try await CertificateMappingTests.withTLS { server, port, certificates in
            try certificates.makeClient("client", names: [.uri(CertificateMappingTests.mailer)])
            try CertificateMappingTests.create(
                server, CertificateMappingTests.mapping(certificates, .projectAdmin))
            let own = "\(certificates.directory)/client"
            let words = [
                "--ca-file", certificates.authorityFile, "--certificate", "\(own).pem", "--certificate-key",
                "\(own)-key.pem",
            ]
            try Self.runCases(["127.0.0.1:\(port)"] + words, server)
        }
    }

    private static func keyFile(_ server: TestServer) -> String {
        let path = "\(server.directory)/key"
        writeFile(path, server.adminKey.withBytes { [UInt8]($0) })
        return path
    }

    private static func runCases(_ words: [String], _ server: TestServer) throws {
        let output = "\(server.directory)/grpc"
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let process = try ChildProcess(
            "/usr/bin/python3", ["-u", "/\(root)/Fixtures/GRPC/grpc_client.py"] + words, output: output)
        let status = process.wait(seconds: 120)
        let lines = ChildProcess.lines(in: output)
        if lines.contains(where: { $0.contains("ModuleNotFoundError") || $0.contains("'protoc'") }) {
            Issue.record("python3-grpcio or protobuf-compiler is missing: run tools/bootstrap --tests")
        }
        #expect(status == 0, "\(lines.suffix(12).joined(separator: "\n"))")
        #expect(lines.filter { $0.hasPrefix("ok ") }.count == 16)
    }
}
