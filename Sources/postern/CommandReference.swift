/// docs/cli.md: every command with its flags, and every method with its commands. Made from the command tree.
enum CommandReference {
    static var markdown: String {
        """
        # The command line

        Made by `postern help reference`; a test holds this page to the program. Tasks, not commands, are in
        [users.md](users.md), [scripts.md](scripts.md), [operations.md](operations.md) and [audit.md](audit.md).

        ## For every command

        ```text
        \(describe(GlobalFlags.all))```

        A user is named by uid, email or phone number. Secrets are read from files, standard input or the terminal.
        `--dry-run` checks a change on the server and makes none; `--validate-only` is another name of it. A
        command that deletes for good asks for the name of what is deleted; `--confirm NAME` answers.

        | `-o` | prints |
        |---|---|
        | `table`, `wide` | columns; with `wide` every field |
        | `json`, `ndjson` | everything, by the names of the protocol; `ndjson` one object in a line, as they come |
        | `csv` | every field (RFC 4180). Cells are as users wrote them: import them as text into a spreadsheet |
        | `name` | what names each, as `-q` does, with the messages |

        Commands that watch print each record as it comes, with `json` as with `ndjson`; so does `rpc call` with the
        answers of a stream. With `csv` and `wide`, all of them have the columns of the one header. Some output does not
        depend on `-o`: `help` and `completion` print text, `rpc call` and `service-account key create --key-out -`
        print JSON, `user export -` prints users in the form of `--format`, and `audit export -`, `audit key -` and
        `backup create -` print the file that they would make.

        A flag that would mean nothing is refused (status 2): `--tenant` by a command that is not about one tenant, such
        as `apikey list`, and beside an operand, `--where`, `--all-tenants` or `--any-tenant` that names others;
        `--fields`, and `-o` with `wide`, `csv` or `name`, by a command that prints no records; both by `help` and
        `completion`; `--fields` beside `-q`; `--confirm` by a command that asks for no name; `--context` by the
        `context` commands. A tenant of POSTERN_TENANT or of a context is not refused: such a command does not use it.

        | exit status | |
        |---|---|
        \(ExitCode.allCases.map { "| \($0.rawValue) | \($0.meaning) |" }.joined(separator: "\n"))

        Ctrl-C and SIGTERM cancel the call: the command says if a change may have been made or how to go on, removes a
        file that nothing was written to, and ends by the signal. A second signal ends it at once. The file of
        `--key-out` appears when the whole key is in it, whatever ends the command. If the reader of standard output
        leaves, as in `postern user list | head`, the status is 1; changes of many tenants are made to the last one.
        `apikey create` and `apikey rotate` refuse `--fields` that leave the new secret out. Other changes print their
        whole answer if a name in `--fields` is misspelt.

        \(groups)
        ## Methods

        `postern rpc call METHOD FILE` calls any of them with a request in JSON; `postern rpc describe METHOD` says what
        is in it. A refusal is printed without the secrets of its metadata, such as `pending_credential`: a sign-in with
        a second factor is finished by an application, not by this program.

        | method | command, or why it has none |
        |---|---|
        \(methods)
        """
    }

    private static var groups: String {
        CommandTree.groups.map { (name: String, about: String) -> String in
            let commands = CommandTree.commands.filter { $0.path[0] == name }.map(section).joined()
            return commands.isEmpty
                ? "" : "## \(name)\n\n\(about.prefix(1).uppercased() + about.dropFirst()).\n\n\(commands)"
        }.joined()
    }

    private static func section(_ command: Command) -> String {
        var text = "### postern \(command.name)\n\n\(command.summary)\n\n```text\n\(command.usage)\n"
        text += "postern \(command.example)\n"
        if !command.flags.isEmpty { text += "\n" + describe(command.flags) }
        text += "```\n\n"
        if !command.note.isEmpty { text += "```text\n\(command.note)\n```\n\n" }
        if command.isValidatable { text += "Takes `--dry-run`.\n\n" }
        return text
    }

    private static var methods: String {
        ProtocolSchema.shared.methods.map { method in
            let commands = method.commands.map { "`\($0.name)`" }.joined(separator: ", ")
            return "| `\(method.fullName)` | \(method.reasonForNoCommand ?? commands) |"
        }.joined(separator: "\n")
    }
}
