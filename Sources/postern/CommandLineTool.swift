import Base
import Glibc

/// One run of `postern`: finds the command, runs it, reports a failure.
enum CommandLineTool {
    static let version = "0.1.0"
    static let versionLine = "postern \(version)\n"

    /// Runs the command of this process. A signal cancels it, and then ends the process.
    static func runProcess(_ words: [String]) async -> ExitCode {
        // On the main thread, because commands read files and ask on the terminal.
        let command = Task { @MainActor in await run(words, in: .process()) }
        Interruption.listen { command.cancel() }
        let exitCode = await command.value
        Interruption.endProcess()
        return exitCode
    }

    /// Standard output that failed is a failure of the command. If only its reader left, as in `postern user list |
    /// head`, nothing is said of it.
    static func run(_ words: [String], in console: Console) async -> ExitCode {
        let exitCode = await runCommand(words, in: console)
        guard let errorCode = console.outputErrorCode() else { return exitCode }
        if errorCode != EPIPE { console.sayError("standard output: \(String(cString: strerror(errorCode)))") }
        return exitCode == .ok ? .general : exitCode
    }

    private static func runCommand(_ words: [String], in console: Console) async -> ExitCode {
        do {
            switch try CommandTree.match(words) {
            case .help(let text):
                console.write([UInt8](text.utf8))
                return .ok
            case .command(let command, let arguments):
                return try await run(command, arguments, in: console)
            }
        } catch let error as CommandError {
            if error.exitCode == .interrupted { return .interrupted }
            console.sayError(error.message)
            if let hint = error.hint { console.say(hint) }
            return error.exitCode
        } catch is OutputFailed {
            return .general
        } catch _ where Task.isCancelled {
            return .interrupted
        } catch {
            console.sayError("\(error)")
            return .general
        }
    }

    /// Runs the command, and reports a failure that the server or the channel gave.
    private static func run(
        _ command: Command, _ arguments: Arguments, in console: Console
    ) async throws -> ExitCode {
        let session = try Session(
            arguments, console: console, isReadOnly: command.isReadOnly,
            sendsIdempotencyKeys: command.sendsIdempotencyKeys, target: command.target(arguments))
        do {
            try await command.run(session)
        } catch let failure as Failure {
            let isInterrupted = Task.isCancelled && failure.is(.cancelled)
            // Nobody has to be told that a command that only reads was interrupted, such as a watch.
            if !isInterrupted || !command.isReadOnly {
                let report = FailureReport(failure, at: try? session.destination(), of: command)
                report.print(session.output.format, to: console)
            }
            await session.close()
            return isInterrupted ? .interrupted : ExitCode(failure.code)
        } catch {
            await session.close()
            throw error
        }
        await session.close()
        if console.outputErrorCode() != nil, !command.isReadOnly, !session.isValidatingOnly {
            console.say("postern \(command.name) was carried out; its answer could not be printed")
        }
        if let error = session.output.fieldProblem { throw error }
        return .ok
    }
}
