import Base

/// One run of `postern`: finds the command, runs it, reports a failure.
enum CommandLineTool {
    static let version = "0.1.0"
    static let versionLine = "postern \(version)\n"

    static func run(_ words: [String], in console: Console) async -> ExitCode {
        do {
            switch try CommandTree.match(words) {
            case .help(let text):
                console.write([UInt8](text.utf8))
                return .ok
            case .command(let command, let arguments):
                let session = try Session(arguments, console: console, isReadOnly: command.isReadOnly)
                do {
                    try await command.run(session)
                } catch let failure as Failure {
                    await session.close()
                    let report = FailureReport(failure, at: try? session.destination())
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
        } catch let error as CommandError {
            console.sayError(error.message)
            if let hint = error.hint { console.say(hint) }
            return error.exitCode
        } catch {
            console.sayError("\(error)")
            return .general
        }
    }
}
