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

    /// What a command that succeeds writes to standard output.
    enum Printing: Sendable {
        /// Records, in the form that -o asks for.
        case records
        /// Nothing, or a file. With `-o json` a failure is JSON on standard error, as with every command.
        case noRecords
        /// Text for people, or for a shell. The command asks no server.
        case text
    }

    /// `["tenant", "update"]`.
    let path: [String]
    /// The methods of postern.v1 that the command is there for: `["Users/Get"]`. A name of another package is whole.
    var methods: [String] = []
    let summary: String
    /// A whole command line that works, without `postern`; the first thing that help shows.
    let example: String
    var operands: [Operand] = []
    /// The place of the operand that names the command's tenant. Nil: there is no such operand.
    var tenantOperand: Int?
    var flags: [Flag] = []
    /// Takes --dry-run.
    var isValidatable = false
    /// Changes nothing on the server. Every other command names the server before it changes anything.
    var isReadOnly = false
    var prints = Printing.records
    /// Whether --tenant means something to the command. Nil: it does if a request of `methods` names a tenant.
    var takesTenant: Bool?
    /// Asks for the name of what is deleted, which --confirm answers.
    var asksForName = false
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
