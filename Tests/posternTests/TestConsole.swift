import Base
import Synchronization
import TestSupport

@testable import postern

/// A console that remembers what was written and answers questions by a script.
final class TestConsole: Sendable {
    private let output = Mutex<[UInt8]>([])
    private let messages = Mutex<[UInt8]>([])
    private let answers: Mutex<[String]>
    private let input: String
    private let environment: [String: String]
    private let outputErrorCode: Int32?

    /// `answers`: the lines that are typed at the terminal, in order; none: there is no terminal. `outputErrorCode`:
    /// standard output has failed with this.
    init(
        answers: [String] = [], input: String = "", environment: [String: String] = ["HOME": "/nonexistent"],
        outputErrorCode: Int32? = nil
    ) {
        self.answers = Mutex(answers)
        self.input = input
        self.environment = environment
        self.outputErrorCode = outputErrorCode
    }

    var console: Console {
        Console(
            write: { bytes in self.output.withLock { $0 += bytes } },
            writeMessage: { bytes in self.messages.withLock { $0 += bytes } },
            readInput: { [UInt8](self.input.utf8) },
            ask: { _, _ in self.answers.withLock { $0.isEmpty ? nil : [UInt8]($0.removeFirst().utf8) } },
            environment: environment, messagesAreForTerminal: false, outputErrorCode: { self.outputErrorCode })
    }

    var writtenBytes: [UInt8] { output.withLock { $0 } }
    var written: String { String(decoding: output.withLock { $0 }, as: UTF8.self) }
    var said: String { String(decoding: messages.withLock { $0 }, as: UTF8.self) }

    typealias Outcome = (code: ExitCode, written: String, said: String)

    /// Runs a command with the server's admin key, and without questions.
    static func run(_ words: [String], on server: TestServer) async -> Outcome {
        let test = TestConsole()
        return (await CommandLineTool.run(globals(for: server) + words, in: test.console), test.written, test.said)
    }

    static func globals(for server: TestServer) -> [String] {
        let keyFile = "\(server.directory)/admin-key"
        // Another command may be reading the file.
        if !File.exists(keyFile) { writeFile(keyFile, server.adminKey.withBytes { [UInt8]($0) }) }
        return ["--server", "127.0.0.1:\(server.port)", "--key-file", keyFile, "-y"]
    }

    func run(_ words: String...) async -> ExitCode { await CommandLineTool.run(words, in: console) }
}
