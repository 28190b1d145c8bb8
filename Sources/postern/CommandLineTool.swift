import Base
import Glibc

/// One run of `postern`: finds the command, runs it, reports a failure.
enum CommandLineTool {
    static let version = "0.1.0"
    static let versionLine = "postern \(version)\n"

    /// Standard output that failed is a failure of the command, unless its reader left: `postern user list | head`.
    static func run(_ words: [String], in console: Console) async -> ExitCode {
        let exitCode = await runCommand(words, in: console)
        guard let errorCode = console.outputErrorCode(), errorCode != EPIPE else { return exitCode }
        console.sayError("standard output: \(String(cString: strerror(errorCode)))")
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
            console.sayError(error.message)
            if let hint = error.hint { console.say(hint) }
            return error.exitCode
        } catch is OutputFailed {
            return .general
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
            sendsIdempotencyKeys: command.sendsIdempotencyKeys)
        do {
            try await command.run(session)
        } catch let failure as Failure {
            await session.close()
            let report = FailureReport(failure, at: try? session.destination(), of: command)
            report.print(session.output.format, to: console)
            return ExitCode(failure.code)
        } catch {
            await session.close()
            throw error
        }
        await session.close()
        if let error = session.output.fieldProblem { throw error }
        return .ok
    }
}
