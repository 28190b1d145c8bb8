import Base
import Glibc

/// The process's surroundings: streams, terminal, environment. A test makes its own.
///
/// Standard output is for data, standard error for all messages to people.
struct Console: Sendable {
    var write: @Sendable ([UInt8]) -> Void
    var writeMessage: @Sendable ([UInt8]) -> Void
    /// All of standard input.
    var readInput: @Sendable () throws -> [UInt8]
    /// One line from the terminal; nil: there is none to ask. `isSecret`: without echo.
    var ask: @Sendable (_ question: String, _ isSecret: Bool) -> [UInt8]?
    var environment: [String: String]
    var messagesAreForTerminal: Bool
    /// The `errno` of the first write to standard output that failed. Nil: none has failed.
    var outputErrorCode: @Sendable () -> Int32? = { nil }
    var outputIsForTerminal = false

    /// Whether messages have colour, which only repeats the words; https://no-color.org.
    var usesColor: Bool {
        messagesAreForTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }

    /// Messages name users and repeat what servers and files say: their control characters are replaced.
    func say(_ message: String) { say(message, behind: "") }

    func sayError(_ message: String) {
        say(message, behind: usesColor ? "\u{1B}[31merror:\u{1B}[0m " : "error: ")
    }

    private func say(_ message: String, behind mark: String) {
        writeMessage([UInt8]((mark + Output.printable(message, keepsLines: true) + "\n").utf8))
    }

    func print(_ line: String) { write([UInt8]((line + "\n").utf8)) }

    /// Stops a command that prints for long, once standard output has failed.
    func checkOutput() throws(OutputFailed) {
        if outputErrorCode() != nil { throw OutputFailed() }
    }

    static func process() -> Console {
        let output = StandardOutput(descriptor: STDOUT_FILENO)
        return Console(
            write: { output.write($0) },
            // A failure to write a message cannot be reported to anybody.
            writeMessage: { StandardOutput.writeAll($0, to: STDERR_FILENO) },
            readInput: { try File.readAll(descriptor: STDIN_FILENO, name: "standard input") },
            ask: askTerminal,
            environment: processEnvironment(),
            messagesAreForTerminal: isatty(STDERR_FILENO) == 1,
            outputErrorCode: { output.errorCode }, outputIsForTerminal: isatty(STDOUT_FILENO) == 1)
    }
}

/// A signal ends the process at a question: nothing was begun that has to be told, and the terminal is as it was.
private func askTerminal(_ question: String, isSecret: Bool) -> [UInt8]? {
    let answer = answerOfTerminal(question, isSecret: isSecret)
    if answer == nil { Interruption.endProcess() }
    return answer
}

/// Asks on the terminal itself, so that redirected streams do not matter.
private func answerOfTerminal(_ question: String, isSecret: Bool) -> [UInt8]? {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    StandardOutput.writeAll([UInt8](Output.printable(question, keepsLines: true).utf8), to: terminal)
    var saved = termios()
    guard tcgetattr(terminal, &saved) == 0 else { return nil }
    if isSecret {
        var silent = saved
        silent.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(terminal, TCSAFLUSH, &silent)
    }
    defer {
        if isSecret {
            tcsetattr(terminal, TCSAFLUSH, &saved)
            StandardOutput.writeAll([0x0A], to: terminal)
        }
    }
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while Interruption.waitForInput(terminal), read(terminal, &byte, 1) == 1, byte != 0x0A { line.append(byte) }
    return Interruption.isAsked ? nil : line
}

private func processEnvironment() -> [String: String] {
    var variables: [String: String] = [:]
    var entry = environ
    while let pointer = entry.pointee {
        let text = String(cString: pointer)
        if let equals = text.firstIndex(of: "=") {
            variables[String(text[..<equals])] = String(text[text.index(after: equals)...])
        }
        entry += 1
    }
    return variables
}
