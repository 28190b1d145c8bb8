import Base
import Glibc
import TestSupport
import Testing

@testable import postern

/// Commands that are cut short by a signal, or whose output nobody reads any more.
@Suite struct InterruptionTests {
    private func withSilentServer(_ body: (String) async throws -> Void) async throws {
        try await TestSupport.withSilentServer { try await body("127.0.0.1:\($0)") }
    }

    /// A command line for the silent server, with a key that it never looks at.
    private func words(_ words: [String], _ address: String, in directory: String) -> [String] {
        writeFile("\(directory)/key", [UInt8]("pk_a_b\n".utf8))
        return words + ["--server", address, "--key-file", "\(directory)/key", "--timeout", "60s"]
    }

    @Test func `A rotation that is cancelled says that its answer is lost, and leaves no file`() async throws {
        try await withTemporaryDirectory { directory in
            try await withSilentServer { address in
                let (file, test) = ("\(directory)/new.key", TestConsole())
                let line = words(["apikey", "rotate", "k1", "--key-out", file], address, in: directory)
                let console = test.console
                let command = Task { await CommandLineTool.run(line, in: console) }
                try await until { File.exists(file) }
                command.cancel()
                let code = await command.value
                #expect(code == .interrupted && !File.exists(file), "\(test.said)")
                #expect(test.said.contains("hint: a change may have been made all the same"), "\(test.said)")
                #expect(test.said.contains("hint: do not rotate again"), "\(test.said)")
            }
        }
    }

    @Test(arguments: [["audit", "watch", "--after", "1"], ["user", "export", "users.ndjson"]])
    func `A command that only reads ends without a word, and leaves no file`(command: [String]) async throws {
        try await withTemporaryDirectory { directory in
            try await withSilentServer { address in
                let test = TestConsole()
                let file = "\(directory)/users.ndjson"
                let named = command.map { $0 == "users.ndjson" ? file : $0 }
                let (line, console) = (words(named, address, in: directory), test.console)
                let running = Task { await CommandLineTool.run(line, in: console) }
                try await Task.sleep(for: .milliseconds(50))
                running.cancel()
                let code = await running.value
                #expect(code == .interrupted && test.said.isEmpty && !File.exists(file), "\(test.said)")
            }
        }
    }

    @Test func `A signal ends the process after the command has told what it leaves`() async throws {
        try await withTemporaryDirectory { directory in
            try await withSilentServer { address in
                let (file, said) = ("\(directory)/new.key", "\(directory)/said")
                let line = words(["apikey", "rotate", "k1", "--key-out", file], address, in: directory)
                let process = try ChildProcess(ChildProcess.built("postern"), line, output: said)
                try await until { File.exists(file) }
                // The file is made after the signals are listened to.
                process.send(signal: SIGTERM)
                let status = process.wait(seconds: 60)
                let text = String(decoding: readFile(said) ?? [], as: UTF8.self)
                // The status of a process that a signal ended, for a shell 143.
                #expect(status == -1 && !File.exists(file), "\(text)")
                #expect(text.contains("hint: do not rotate again"), "\(text)")
            }
        }
    }

    @Test func `A command whose reader has left goes on, and fails at its end`() throws {
        try withTemporaryDirectory { directory in
            // The reader has left before the program writes.
            let script = "{ sleep 0.3; \"$0\" help reference; echo \"status $?\" >&2; } | true; wait"
            let said = "\(directory)/said"
            let process = try ChildProcess(
                "bash", ["-c", script, ChildProcess.built("postern")], output: said)
            _ = process.wait(seconds: 60)
            #expect(readFile(said) == [UInt8]("status 1\n".utf8))
        }
    }
}
