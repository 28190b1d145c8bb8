import Base
import JSON
import PosternClient

/// The report of a call that was refused, or did not come through.
struct FailureReport {
    private let failure: Failure
    /// Where the call went; nil in tests of the words alone.
    private let destination: Destination?
    /// Nil: not known, so that it may be a change.
    private let command: Command?

    init(_ failure: Failure, at destination: Destination?, of command: Command? = nil) {
        self.failure = failure
        self.destination = destination
        self.command = command
    }

    /// Prints on standard error: lines for people, or one line of JSON for programs.
    func print(_ format: Output.Format, to console: Console) {
        switch format {
        case .table, .wide, .csv, .name: printLines(to: console)
        case .json, .ndjson: console.writeMessage(Output.printable(json: json.serialized()) + [0x0A])
        }
    }

    private func printLines(to console: Console) {
        var line = "\(failure.message) [\(failure.reason)]"
        if let requestID = failure.metadataValue("request_id") { line += " request-id=\(requestID)" }
        console.sayError(line)
        for violation in failure.violations where !failure.message.contains(violation.description) {
            console.say("  \(violation.field): \(violation.description)")
        }
        for entry in metadata where !isInHints(entry) {
            console.say("  \(Output.printable(entry.key)): \(Output.printable(entry.value))")
        }
        for hint in hints { console.say("hint: \(hint)") }
    }

    private var json: JSONValue {
        var members: [JSONValue.Member] = json(of: failure).object ?? []
        if let destination { members.append(.init("server", .string(Text(destination.server)))) }
        return .object(members)
    }

    private func json(of failure: Failure) -> JSONValue {
        [
            "code": .string(Text(failure.code.name)), "reason": .string(Text(failure.reason)),
            "message": .string(Text(failure.message)),
            "metadata": .object(metadata.map { .init(Text($0.key), .string(Text($0.value))) }),
            "violations": .array(
                failure.violations.map {
                    ["field": .string(Text($0.field)), "description": .string(Text($0.description))]
                }),
            "request_id": failure.metadataValue("request_id").map { .string(Text($0)) } ?? .null,
            "retry_after_seconds": retryAfterSeconds.map { .integer($0) } ?? .null,
            "hints": .array(hints.map { .string(Text($0)) }),
        ]
    }

    /// The server's metadata about the reason, each key once and without secrets, because standard error goes into
    /// logs.
    private var metadata: [Failure.Entry] {
        var keys: Set<String> = ["request_id"]
        return failure.metadata.filter { entry in
            let isSecret = ["token", "secret", "password", "credential"].contains { entry.key.contains($0) }
            return !isSecret && keys.insert(entry.key).inserted
        }
    }

    private func isInHints(_ entry: Failure.Entry) -> Bool {
        failure.is(.tenantIDMismatch) && entry.key == "tenant"
            || failure.is(.adminRestrictedOperation)
                && ["tenant", "toggle", "required_role", "decision_id"].contains(entry.key)
    }

    /// Nil: the server did not say.
    private var retryAfterSeconds: Int64? {
        guard let retryAfter = failure.retryAfter, retryAfter > .zero else { return nil }
        return max(1, (retryAfter.microseconds + 999_999) / 1_000_000)
    }

    /// Advice when nobody knows whether a change was made, or when it was made and its answer is lost.
    private var hintsOnLostAnswer: [String] {
        var hints: [String]
        switch failure.knownReason {
        case .connectionLost, .storeUnavailable, .deadlineExceeded, .cancelled:
            if command?.isReadOnly == true { return [] }
            hints = ["a change may have been made all the same: look before you try again"]
        case .alreadyDone: hints = ["the change was made, and its answer was lost on the way"]
        default: return []
        }
        if let advice = command?.ifAnswerIsLost, !advice.isEmpty { hints.append(advice) }
        return hints
    }

    /// The server's words are about a pending token, which is a secret and is not printed.
    private let hintsOnLinking = [
        "sign in to that account with postern account sign-in, and write its ID token to a file; then give the "
            + "provider's credential again with --link-to-file FILE",
        "an authorization code works once: get another one by way of account auth-uri",
    ]

    /// The server names the tenant of a token that it proved to be its own; "" stands for the default pool. It names no
    /// tenant if the request itself named two.
    private var hintsOnOtherTenant: [String] {
        guard let tenant = failure.metadataValue("tenant") else { return [] }
        // No tenant was named, and the request was not about the default pool: so it was about the key's own tenant.
        if tenant.isEmpty, destination?.tenant.isEmpty == true {
            return ["the key is bound to another tenant than the token's: --key-file FILE names another one"]
        }
        return ["-t \(tenant.isEmpty ? "\"\"" : tenant)"]
    }

    /// Only for commands of admins: an end user is not told who has a name.
    private var hintsOnTakenName: [String] {
        guard command?.path.first == "user" else { return [] }
        let tenant = destination?.tenant ?? ""
        let command = "postern \(tenant.isEmpty ? "" : "-t \(tenant) ")user get"
        switch failure.knownReason {
        case .emailExists: return ["\(command) --email EMAIL shows the user who has it"]
        case .phoneNumberExists: return ["\(command) --phone-number NUMBER shows the user who has it"]
        default: return ["\(command) UID shows the user who has it"]
        }
    }

    /// The words of the refused certificate are those of `ClientStream`.
    private var hintOnConnecting: String {
        failure.message.contains("certificate was refused")
            ? "--ca-file FILE names the authorities to trust, --server-name NAME the name to expect"
            : "is posternd running there? --server HOST:PORT says where"
    }

    /// Advice on a refusal.
    private var hints: [String] {
        var hints = hintsOnLostAnswer
        switch failure.knownReason {
        case .adminRestrictedOperation:
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
        case .callerUnauthenticated:
            let named = "name a file that holds an API key: --key-file FILE, or POSTERN_KEY_FILE"
            hints.append(
                destination?.keyFile.map { "the server does not take what \($0) holds: revoked, or of another server" }
                    ?? named)
            if let unused = destination?.unusedKey { hints.append("not used: \(unused)") }
            hints.append("this is the caller's own credential, not an end user's")
        case .invalidLoginCredentials, .invalidPassword, .emailNotFound:
            hints.append("this is the end user's email or password; the API key is good")
        case .secondFactorRequired:
            hints.append(
                "the password is right; an application finishes the sign-in with one of these factors "
                    + "(docs/signing-in.md#second-factors; in Swift docs/client.md)")
            hints.append("an admin helps a user who lost them: postern user mfa remove UID --all")
        case .secondFactorEnrollmentRequired:
            hints.append(
                "the user adds a second factor in an application first "
                    + "(docs/signing-in.md#second-factors; in Swift docs/client.md)")
        case .accountExistsWithDifferentCredential: hints += hintsOnLinking
        case .unauthorizedDomain:
            hints.append("an admin lists the host: postern tenant update --allowed-continue-domains HOST,…")
            hints.append("--allow-loopback-continue-url true allows this machine, for trying things out")
        case .tenantIDMismatch: hints += hintsOnOtherTenant
        case .emailExists, .phoneNumberExists, .duplicateLocalID: hints += hintsOnTakenName
        case .tenantNotFound: hints.append("postern tenant list shows the tenants there are")
        case .connectionFailed: hints.append(hintOnConnecting)
        default: break
        }
        if failure.violations.contains(where: { $0.description.contains("allow_http_loopback") }) {
            hints.append("--allow-http-loopback true allows http on this machine, for trying things out")
        }
        if let guidance = failure.guidance {
            let words = [guidance.message, guidance.url].filter { !$0.isEmpty }
            if !words.isEmpty { hints.append("the tenant tells its users: " + words.joined(separator: " ")) }
        }
        if let retryAfterSeconds { hints.append("try again in \(retryAfterSeconds) s") }
        return hints
    }
}
