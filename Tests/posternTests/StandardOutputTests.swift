import Base
import Glibc
import TestSupport
import Testing

@testable import postern

/// Standard output that cannot be written to.
@Suite struct StandardOutputTests {
    @Test func `The first failure is kept`() throws {
        let descriptor = try File.open("/dev/full", O_WRONLY)
        defer { close(descriptor) }
        let output = StandardOutput(descriptor: descriptor)
        #expect(output.errorCode == nil)
        output.write([1])
        #expect(output.errorCode == ENOSPC)
    }

    @Test func `A pipe that is non-blocking and full is waited for`() throws {
        try withTemporaryDirectory { directory in
            let program = try #require(popen("sleep 0.1; wc -c > '\(directory)/count'", "w"))
            #expect(fcntl(fileno(program), F_SETFL, O_WRONLY | O_NONBLOCK) == 0)
            let output = StandardOutput(descriptor: fileno(program))
            output.write([UInt8](repeating: 0x61, count: 1 << 20))
            #expect(output.errorCode == nil)
            #expect(pclose(program) == 0)
            #expect(readFile("\(directory)/count") == [UInt8]("1048576\n".utf8))
        }
    }

    @Test func `Output that is lost is a failure, of which nothing is said if its reader left`() async {
        let full = TestConsole(outputErrorCode: ENOSPC)
        #expect(await full.run("version") == .general)
        #expect(full.said == "error: standard output: No space left on device\n")
        let left = TestConsole(outputErrorCode: EPIPE)
        #expect(await left.run("version") == .general)
        #expect(left.said.isEmpty)
        // A failure of the command itself keeps its status.
        let wrong = TestConsole(outputErrorCode: ENOSPC)
        #expect(await wrong.run("no-such-command") == .usage)
    }

    @Test(arguments: [ENOSPC, EPIPE])
    func `An export to standard output stops at the first failed write`(_ errorCode: Int32) async throws {
        try await withServer { server in
            let test = TestConsole(outputErrorCode: errorCode)
            let words = TestConsole.globals(for: server) + ["user", "export", "-", "--format", "ndjson"]
            #expect(await CommandLineTool.run(words, in: test.console) == .general)
            #expect(!test.said.contains("users exported"), "\(test.said)")
            #expect(test.said.contains("standard output: ") == (errorCode == ENOSPC), "\(test.said)")
        }
    }
}
