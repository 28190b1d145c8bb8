import Base
import Glibc
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

    @Test func `A process that is gone has no usage`() {
        #expect(throws: BenchError.self) { try ServerProcess(pid: Int(Int32.max)).usage() }
    }
}
