import Glibc

/// The reason why a command stops, other than a refusal of the server.
struct CommandError: Error, Equatable {
    var exitCode: ExitCode
    var message: String
    /// Advice on the error.
    var hint: String?

    init(_ message: String, hint: String? = nil, exitCode: ExitCode = .general) {
        self.message = message
        self.hint = hint
        self.exitCode = exitCode
    }

    static func usage(_ message: String, hint: String? = nil) -> CommandError {
        CommandError(message, hint: hint, exitCode: .usage)
    }

    static func emptyCondition(_ name: String) -> CommandError {
        .usage("\(name) is empty, and that would select everything", hint: "leave it out to select everything")
    }

    /// The error of the system call that has just failed, on the file `name`.
    static func system(_ name: String) -> CommandError {
        CommandError("\(name): \(String(cString: strerror(errno)))")
    }

    /// The end of a command whose question was answered with no.
    static let declined = CommandError("nothing was changed", exitCode: .declined)
}
