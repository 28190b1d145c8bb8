import Base
import PosternClient

/// One run of `postern`: finds the command, runs it, says what went wrong.
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
                let session = try Session(arguments, console: console)
                do {
                    try await command.run(session)
                } catch {
                    await session.close()
                    throw error
                }
                await session.close()
                return .ok
            }
        } catch let error as CommandError {
            console.sayError(error.message)
            if let hint = error.hint { console.say(hint) }
            return error.exitCode
        } catch let failure as Failure {
            report(failure, to: console)
            return ExitCode(failure.code)
        } catch {
            console.sayError("\(error)")
            return .general
        }
    }

    static func report(_ failure: Failure, to console: Console) {
        var line = "\(failure.message) [\(failure.reason)]"
        if let requestID = failure.metadataValue("request_id") { line += " request-id=\(requestID)" }
        console.sayError(line)
        for violation in failure.violations where !failure.message.contains(violation.description) {
            console.say("  \(violation.field): \(violation.description)")
        }
        for hint in hints(for: failure) { console.say("hint: \(hint)") }
    }

    /// What can be done about a refusal.
    static func hints(for failure: Failure) -> [String] {
        var hints: [String] = []
        switch failure.reason {
        case "ADMIN_RESTRICTED_OPERATION":
            let toggle = failure.metadataValue("toggle") ?? ""
            let setting = toggle.split(separator: ".").last.map(String.init) ?? toggle
            let tenant = failure.metadataValue("tenant") ?? ""
            let flag = setting.replacing("_", with: "-")
            let role = failure.metadataValue("required_role") ?? "tenant-admin"
            hints.append(
                "the tenant's setting \(toggle) refuses this; a \(role)"
                    + " can change it: postern tenant update \(tenant.isEmpty ? "" : tenant + " ")--\(flag) false")
            if let decision = failure.metadataValue("decision_id") {
                hints.append("recorded as \(decision): postern \(tenant.isEmpty ? "" : "-t \(tenant) ")denials list")
            }
        case "CALLER_UNAUTHENTICATED":
            hints.append("name a file that holds an API key: --key-file FILE, or POSTERN_KEY_FILE")
        case "TENANT_NOT_FOUND": hints.append("postern tenant list shows the tenants there are")
        case ClientReason.connectionFailed: hints.append("is posternd running there? --server HOST:PORT says where")
        default: break
        }
        if let guidance = failure.guidance {
            let words = [guidance.message, guidance.url].filter { !$0.isEmpty }
            if !words.isEmpty { hints.append("the tenant tells its users: " + words.joined(separator: " ")) }
        }
        if let retryAfter = failure.retryAfter, retryAfter > .zero {
            hints.append("try again in \(max(1, (retryAfter.microseconds + 999_999) / 1_000_000)) s")
        }
        return hints
    }
}
