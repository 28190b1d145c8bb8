/// All commands, and the search for the command of a command line.
enum CommandTree {
    static let commands: [Command] = [
        TenantCommands.all, ProviderCommands.all, EmailConfigCommands.all, EmailTemplateCommands.all,
        SMSConfigCommands.all,
        HookConfigCommands.all, OutboxCommands.all, UserCommands.all, UserFindCommands.all, UserPatchCommand.all,
        PermissionCommands.all,
        UserLinkCommands.all, UserMFACommands.all, SessionCommands.all, RevocationCommands.all, KeyCommands.all,
        APIKeyCommands.all,
        CertificateMappingCommands.all, ServiceAccountCommands.all, TokenCommands.all, CookieCommands.all,
        AccountCommands.all, AccountCodeCommands.all, DenialCommands.all, AuditCommands.all, ServerCommands.all,
        ClusterCommands.all, StoreCommands.all, BackupCommands.all, RPCCommands.all, ContextCommands.all,
        CompletionCommands.all,
        InformationCommands.all,
    ].flatMap(\.self)

    /// The first words of all commands, and their subjects.
    static let groups = [
        ("tenant", "tenants and their settings, self-service toggles included"),
        ("provider", "identity providers that users sign in with"),
        ("email-config", "how a tenant's mail goes out"),
        ("sms-config", "how a tenant's SMS go out"),
        ("hook-config", "whom the server asks before users sign up or in"),
        ("outbox", "mail and SMS on their way out"),
        ("user", "what admins do with users; import"),
        ("session", "who is signed in where"),
        ("revocations", "tokens that are refused before their time"),
        ("account", "what end users do for themselves"),
        ("token", "verify, refresh, make and look into tokens"),
        ("denials", "what the self-service toggles refused"),
        ("audit", "the log of who changed what, and its proof"),
        ("apikey", "credentials of the server's callers"),
        ("whoami", "what this credential is"),
        ("can-i", "what this credential may call"),
        ("certificate", "certificates of clients, and the roles they have"),
        ("service-account", "identities for programs, and their keys"),
        ("key", "the keys that sign ID tokens"),
        ("server", "the server itself"),
        ("cluster", "servers that share their writes"),
        ("store", "the data of a server that is stopped"),
        ("backup", "copies of everything a server has"),
        ("rpc", "the methods of the protocol"),
        ("context", "servers, tenants and keys by name"),
        ("completion", "completion for bash, zsh and fish"),
        ("version", "the version of this program"),
        ("help", "this, the exit codes, and everything as one page"),
    ]

    enum Match {
        case command(Command, Arguments)
        /// The text to print; nothing else is to be done.
        case help(String)
    }

    /// Global flags may stand anywhere, a command's own flags only after its name. `--` ends the flags.
    static func match(_ words: [String]) throws(CommandError) -> Match {
        // `help tenant update` is `tenant update --help`.
        if words.count > 1, words[0] == "help", !commands.contains(where: { $0.path == Array(words.prefix(2)) }) {
            return try match(["--help"] + words.dropFirst())
        }
        var arguments = Arguments()
        var path: [String] = []
        var command: Command?
        var rest = words[...]
        var flagsEnded = false
        while let word = rest.popFirst() {
            if word == "--", !flagsEnded {
                flagsEnded = true
            } else if word.hasPrefix("-"), word != "-", !flagsEnded,
                flag(named: word, of: command) != nil || !isID(word, of: command)
            {
                try takeFlag(word, &rest, command: command, into: &arguments)
            } else if command != nil {
                arguments.operands.append(word)
            } else {
                path.append(word)
                command = commands.first { $0.path == path }
                if command == nil { try checkGroup(path) }
            }
        }
        if arguments.isSet("version") { return .help(CommandLineTool.versionLine) }
        guard let command else {
            if path.isEmpty || arguments.isSet("help") || path == ["help"] { return .help(help(below: path)) }
            throw .usage("postern \(path.joined(separator: " ")) needs a command", hint: help(below: path))
        }
        if arguments.isSet("help") { return .help(command.help) }
        try check(arguments, for: command)
        return .command(command, arguments)
    }

    /// For a word that names no flag. Ids are operands although they may begin with a dash: one key id in 64 does.
    /// An id differs from a mistyped flag by its length, or by bytes other than small letters and dashes.
    private static func isID(_ word: String, of command: Command?) -> Bool {
        guard let command, !command.operands.isEmpty, !word.contains("=") else { return false }
        let byteCount = word.utf8.count
        let isFlagLike = word.utf8.allSatisfy { $0 == UInt8(ascii: "-") || (0x61...0x7A).contains($0) }
        guard isFlagLike else { return byteCount > 2 }
        return byteCount > (word.hasPrefix("--") ? flagByteCountMax : shortIDByteCountMax)
    }

    static let flagByteCountMax = 40
    private static let shortIDByteCountMax = 12

    /// The flag that a word such as `--limit` or `-q` names.
    private static func flag(named word: String, of command: Command?) -> Flag? {
        (command?.allFlags ?? GlobalFlags.all).first { flag in
            word == "--\(flag.name)" || word == "--\(flag.alias ?? flag.name)"
                || flag.short.map { word == "-\($0)" } == true
        }
    }

    private static func takeFlag(
        _ word: String, _ rest: inout ArraySlice<String>, command: Command?, into arguments: inout Arguments
    ) throws(CommandError) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let flag = flag(named: parts[0], of: command) else {
            let known = command?.allFlags ?? GlobalFlags.all
            let similar = nearest(to: parts[0], in: known.map { "--\($0.name)" })
            let message = command.map { "postern \($0.name) has no flag" } ?? "there is no global flag"
            let takesOperands = command?.operands.isEmpty == false
            throw .usage(
                "\(message) \(parts[0])",
                hint: similar.map { "did you mean \($0)?" }
                    ?? (takesOperands ? "what begins with a dash and is no flag goes behind --" : nil))
        }
        guard flag.placeholder != nil else {
            guard parts.count == 1 else { throw .usage("--\(flag.name) takes no value") }
            arguments.switches.insert(flag.name)
            return
        }
        guard let value = parts.count == 2 ? parts[1] : rest.popFirst() else {
            throw .usage("--\(flag.name) needs a value")
        }
        guard arguments.values.updateValue(value, forKey: flag.name) == nil else {
            throw .usage("--\(flag.name) is given twice")
        }
    }

    private static func checkGroup(_ path: [String]) throws(CommandError) {
        let depth = path.count
        let below = commands.map { $0.path }.filter { $0.count >= depth && $0.starts(with: path.dropLast()) }
        let siblings = Set(below.map { $0[depth - 1] })
        guard !siblings.contains(path[depth - 1]) else { return }
        let parent = (["postern"] + path.dropLast()).joined(separator: " ")
        let hint =
            nearest(to: path[depth - 1], in: siblings.sorted()).map { "did you mean \(parent) \($0)?" }
            ?? "\(parent) --help lists the commands"
        throw .usage("\(parent) has no command \(path[depth - 1])", hint: hint)
    }

    private static func check(_ arguments: Arguments, for command: Command) throws(CommandError) {
        guard arguments.operands.count >= command.requiredOperandCount else {
            throw .usage(
                "\(command.operands[arguments.operands.count].usage) is missing", hint: "postern \(command.example)")
        }
        let isOpenEnded = command.operands.last?.usage.hasSuffix("…]") == true
        guard isOpenEnded || arguments.operands.count <= command.operands.count else {
            throw .usage("\"\(arguments.operands[command.operands.count])\" is one word too many", hint: command.usage)
        }
        guard command.isValidatable || !arguments.isSet("dry-run") else {
            throw .usage("postern \(command.name) cannot --dry-run")
        }
        try command.checkUse(of: arguments)
    }

    /// The commands of a group, or all groups.
    static func help(below path: [String]) -> String {
        guard let group = path.first, group != "help" else {
            return """
                postern: administration of a Postern server.

                  postern tenant create acme
                  postern --tenant acme user create --email ann@example.com
                  postern help user import
                  postern help exit-codes

                Commands:
                \(describe(groups))
                \(GlobalFlags.pointer)

                """
        }
        let members = commands.filter { $0.path.starts(with: path) }
        let rows = members.map { member in
            (([member.name] + member.operands.map(\.usage)).joined(separator: " "), member.summary)
        }
        let example = members.first.map { "  postern \($0.example)\n\n" } ?? ""
        return example + "Commands:\n" + describe(rows)
    }
}
