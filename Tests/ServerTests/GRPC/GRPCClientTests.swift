import Base
import Crypto
import Service
import TestSupport
import Testing

/// A stock gRPC client (grpcio) against a real server; its cases are in Tests/Fixtures/GRPC/grpc_client.py.
@Suite struct GRPCClientTests {
    @Test func `A stock client makes every kind of call, and gets every kind of answer`() async throws {
        try await withServer { server in
            let (keyFile, output) = ("\(server.directory)/key", "\(server.directory)/grpc")
            writeFile(keyFile, server.adminKey.withBytes { [UInt8]($0) })
            let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            let process = try ChildProcess(
                "/usr/bin/python3",
                ["-u", "/\(root)/Fixtures/GRPC/grpc_client.py", "127.0.0.1:\(server.port)", keyFile],
                output: output)
            let status = process.wait(seconds: 120)
            let lines = ChildProcess.lines(in: output)
            if lines.contains(where: { $0.contains("ModuleNotFoundError") || $0.contains("'protoc'") }) {
                Issue.record("python3-grpcio or protobuf-compiler is missing: run tools/bootstrap --tests")
            }
            #expect(status == 0, "\(lines.suffix(12).joined(separator: "\n"))")
            #expect(lines.filter { $0.hasPrefix("ok ") }.count == 16)
        }
    }
}
