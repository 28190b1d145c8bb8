/// One command: its name, its operands and flags, and its work.
struct Command: Sendable {
    /// A word after the command's name.
    enum Operand: Sendable {
        case required(String)
        case optional(String)

        var usage: String {
            switch self {
            case .required(let name): "<\(name)>"
            case .optional(let name): "[\(name)]"
            }
        }
    }

    /// `["tenant", "update"]`.
    let path: [String]
    /// The methods of postern.v1 that the command is there for: `["Users/Get"]`. A name of another package is whole.
    var methods: [String] = []
    let summary: String
    /// A whole command line that works, without `postern`; the first thing that help shows.
    let example: String
    var operands: [Operand] = []
    var flags: [Flag] = []
    /// Takes --dry-run.
    var isValidatable = false
    /// Changes nothing on the server. Every other command names the server before it changes anything.
    var isReadOnly = false
    /// Further text of the help, in whole lines.
    var note = ""
    /// Advice for the case that nobody knows whether the change was made, or that its answer, a secret, is lost.
    var ifAnswerIsLost = ""
    let run: @Sendable (Session) async throws -> Void

    var name: String { path.joined(separator: " ") }

    /// Whether each call has an idempotency key, so that the channel may repeat it. The `account` commands call as an
    /// end user, whose keys the server counts: a script that signs one user in all day would use them up.
    var sendsIdempotencyKeys: Bool { !isReadOnly && path[0] != "account" }

    /// Every flag of the command, the global ones included.
    var allFlags: [Flag] { flags + GlobalFlags.all }

    var requiredOperandCount: Int {
        operands.count { operand in
            if case .required = operand { true } else { false }
        }
    }

    var usage: String {
        (["postern", name] + operands.map(\.usage) + (flags.isEmpty ? [] : ["[flags]"])).joined(separator: " ")
    }

    var help: String {
        var text = """
            \(summary)

              postern \(example)

            Usage: \(usage)

            """
        if !flags.isEmpty { text += "\nFlags:\n" + describe(flags) }
        if !note.isEmpty { text += "\n\(note)\n" }
        let dryRun = isValidatable ? "With --dry-run everything is checked and nothing changed. " : ""
        return text + "\n\(dryRun)\(GlobalFlags.pointer)\n"
    }
}

/// Names on the left, explanations in a column of their own.
func describe(_ flags: [Flag]) -> String {
    describe(flags.map { ($0.usage, $0.help) })
}

func describe(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { name, help in
        "  " + name + String(repeating: " ", count: width - name.count) + "  " + help + "\n"
    }.joined()
}

enum GlobalFlags {
    /// The protocol calls this flag validate_only.
    private static let dryRun = {
        var flag = Flag("dry-run", "check everything, change nothing")
        flag.alias = "validate-only"
        return flag
    }()

    /// The line in the help of a command that takes the place of all global flags.
    static let pointer = "Flags of every command, such as -t, -o and --context: postern help flags"

    static let all = [
        Flag("context", "NAME", "use this context instead of the current one and of the environment"),
        Flag(
            "server", "HOST:PORT[,…]",
            "where posternd listens, or unix:/path; of several the first that works (POSTERN_SERVER; default "
                + "\(Destination.defaultServer))"),
        Flag(
            "tenant", short: "t", "ID",
            "the tenant to work on (POSTERN_TENANT); \"\": the key's own tenant, or else the default pool, as when "
                + "nothing says one"),
        Flag("key-file", "FILE", "holds the API key (POSTERN_KEY_FILE; default ./postern-data/admin-key)"),
        Flag("tls", "speak TLS, trusting the system's certificates (POSTERN_TLS=true)"),
        Flag("ca-file", "FILE", "speak TLS, trusting these certificates instead (POSTERN_CA_FILE)"),
        Flag("server-name", "NAME", "speak TLS; the server's certificate is for this name (POSTERN_SERVER_NAME)"),
        Flag("cert", "FILE", "speak TLS, and show this certificate (POSTERN_CERT)"),
        Flag("key", "FILE", "the private key of --cert (POSTERN_KEY)"),
        Flag("output", short: "o", "FORMAT", "table (default), wide, json, ndjson, csv or name"),
        Flag(
            "fields", "NAME,…",
            "print these fields only, by their names in the JSON or in one record's table: email,created_at"),
        Flag("no-headers", "leave the table's first line out"),
        Flag("quiet", short: "q", "print ids only, and no messages"),
        Flag("timeout", "DURATION", "how long to wait for an answer (default 10s)"),
        Flag("request-id", "ID", "names the call in the server's log"),
        dryRun,
        Flag("yes", short: "y", "do not ask"),
        Flag("production", "you mean the production server; with context add: marks it as one"),
        Flag("confirm", "NAME", "confirms what cannot be undone: the name of what is deleted"),
        Flag("help", short: "h", "explain the command"),
        Flag("version", "print the version of this program"),
    ]
}
