import Base
import Glibc
import PosternClient
import TestSupport
import Testing

@testable import PosternBench

@Suite struct ServerProcessTests {
    @Test func `The process that listens on a port is found, with its CPU time and memory`() throws {
        let server = try StubServer(connections: 1) { _, _ in true }
        let found = ServerProcess(listeningOn: server.address.port)
        _ = try Connection(to: server.address, authorization: "")
        server.finish()
        #expect(found?.pid == Int(getpid()))
        let usage = try ServerProcess(pid: Int(getpid())).usage()
        #expect(usage.residentByteCount > usage.anonymousByteCount && usage.anonymousByteCount > 0)
        #expect(try usage.cpuMicroseconds <= ServerProcess.machineCPUMicroseconds())
    }

    @Test func `A process here that listens on the port of a server elsewhere is not that server`() throws {
        for text in ["127.0.0.1:1", "127.0.0.2:1", "localhost:1"] {
            #expect(try ServerAddress(parsing: text).isOfThisMachine, "\(text)")
        }
        try withTemporaryDirectory { directory in
            try TextFile.write([UInt8]("pk_a_b".utf8), to: directory + "/key")
            let server = try StubServer(connections: 1) { _, _ in true }
            // 192.0.2.1 is an address for documentation: no machine has it (RFC 5737).
            var found: [Bool] = []
            for host in ["127.0.0.1", "192.0.2.1"] {
                var arguments = try Arguments([
                    "--server", "\(host):\(server.address.port)", "--key-file", directory + "/key",
                ])
                found.append(try Target(&arguments).process != nil)
            }
            _ = try Connection(to: server.address, authorization: "")
            server.finish()
            #expect(found == [true, false])
        }
    }

    @Test(arguments: [("127.0.0.1:1", true), ("127.0.0.2:1", true), ("[::1]:1", false), ("192.0.2.1:1", false)])
    func `Callers have addresses of their own only on the loopback of IPv4`(text: String, haveOwn: Bool) throws {
        #expect(try ServerAddress(parsing: text).usesSource == haveOwn)
    }

    @Test func `A channel of the client library has the same TLS settings`() throws {
        try withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            try TextFile.write([UInt8]("pk_a_b".utf8), to: directory + "/key")
            var plain = try Arguments(["--key-file", directory + "/key"])
            #expect(try Target(&plain).channelTLS == nil)
            var secured = try Arguments([
                "--key-file", directory + "/key", "--ca-file", certificates.authorityFile,
            ])
            #expect(try Target(&secured).channelTLS?.caFile == certificates.authorityFile)
        }
    }

    @Test func `A process that is gone has no usage`() {
        #expect(throws: BenchError.self) { try ServerProcess(pid: Int(Int32.max)).usage() }
    }
}
