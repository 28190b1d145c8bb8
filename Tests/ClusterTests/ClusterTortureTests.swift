import Glibc
import TestSupport
import Testing

/// `tools/cluster torture` against the posternd of this build: faults of nodes, engine and connections.
@Suite(.serialized) struct ClusterTortureTests {
    private func torture(_ arguments: [String], in directory: String, output: String) throws -> ChildProcess {
        let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return try ChildProcess(
            "\(root)/tools/cluster",
            ["torture", "--posternd", ChildProcess.built("posternd"), "--directory", directory] + arguments,
            output: output)
    }

    @Test func faultsLoseNothingAndLeaveAllNodesEqual() throws {
        try withTemporaryDirectory { directory in
            chmod(directory, 0o711)
            let output = "\(directory)/output"
            let status = try torture(["--seconds", "35"], in: directory, output: output).wait(seconds: 180)
            #expect(status == 0, "\(String(decoding: readFile(output) ?? [], as: UTF8.self))")
        }
    }

    /// Ctrl-C in the middle of a fault, and SIGKILL, for which a program cannot prepare.
    @Test(arguments: [SIGINT, SIGKILL]) func nothingOutlivesIt(signal: Int32) throws {
        try withTemporaryDirectory { directory in
            chmod(directory, 0o711)
            let output = "\(directory)/output"
            let process = try torture(["--minutes", "2", "--verbose"], in: directory, output: output)
            try blockUntil("a fault is told") {
                String(decoding: readFile(output) ?? [], as: UTF8.self).contains("\n  ")
            }
            #expect(try hasProcess(named: directory))
            process.send(signal: signal)
            _ = process.wait(seconds: 60)
            try blockUntil("no process of the torture is left") { try !hasProcess(named: directory) }
            if signal == SIGINT {
                #expect(String(decoding: readFile(output) ?? [], as: UTF8.self).contains("ended from outside"))
                #expect(try entries(of: directory) == ["output"])
            }
        }
    }

    /// Whether a program other than the torture itself was started with something in `directory`.
    private func hasProcess(named directory: String) throws -> Bool {
        try ChildProcess("/usr/bin/pgrep", ["-f", "(data-directory|-D) \(directory)/"]).wait() == 0
    }

    private func entries(of directory: String) throws -> [String] {
        let output = "\(directory)/output"
        #expect(try ChildProcess("/bin/ls", [directory], output: output).wait() == 0)
        return String(decoding: readFile(output) ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
