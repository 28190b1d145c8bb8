import Base
import Messages
import PosternClient

/// postern completion …: scripts for shells; the words themselves come from this program.
enum CompletionCommands {
    static let all: [Command] = [bash, zsh, fish, words]

    static let bash: Command = Command(
        path: ["completion", "bash"], summary: "Prints what makes bash complete commands, flags and values.",
        example: "completion bash > ~/.local/share/bash-completion/completions/postern", isReadOnly: true, prints: .text
    ) { session in
        session.console.print(
            """
            _postern() {
                local IFS=$'\\n'
                COMPREPLY=($(postern completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
            }
            complete -o default -F _postern postern
            """)
    }

    static let zsh: Command = Command(
        path: ["completion", "zsh"], summary: "Prints what makes zsh complete commands, flags and values.",
        example: "completion zsh > ~/.zsh/functions/_postern", isReadOnly: true, prints: .text
    ) { session in
        session.console.print(
            """
            #compdef postern
            _postern() {
                local -a candidates
                candidates=(${(f)"$(postern completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
                (( ${#candidates} )) && compadd -- $candidates || _files
            }
            compdef _postern postern
            """)
    }

    static let fish: Command = Command(
        path: ["completion", "fish"], summary: "Prints what makes fish complete commands, flags and values.",
        example: "completion fish > ~/.config/fish/completions/postern.fish", isReadOnly: true, prints: .text
    ) { session in
        session.console.print(
            """
            function __postern_words
                set -l words (commandline -opc)
                postern completion words -- $words[2..-1] (commandline -ct) 2>/dev/null
            end
            complete -c postern -a '(__postern_words)'
            """)
    }

    /// Every word of the line so far is an operand, so that nothing in it is taken for a flag of this command.
    static let words: Command = Command(
        path: ["completion", "words"],
        summary: "Prints what may stand for the last of these words; what shells call.",
        example: "completion words -- tenant get ac", operands: [.optional("word…")], isReadOnly: true, prints: .text
    ) { session in
        let completion = Completion(of: session.arguments.operands)
        var candidates = completion.candidates(contexts: session.contexts.contexts.map(\.name))
        if let request = completion.tenantsRequest { candidates += await tenants(request, session, completion) }
        for candidate in candidates where candidate.hasPrefix(completion.current) { session.console.print(candidate) }
    }

    /// The tenants of the server that the line is about. A server that does not answer at once completes nothing.
    private static func tenants(
        _ request: TenantsListRequest, _ session: Session, _ completion: Completion
    ) async -> [String] {
        guard
            let line = try? Session(completion.arguments, console: session.console, isReadOnly: true),
            let channel = try? line.channel()
        else { return [] }
        defer { Task { await line.close() } }
        let options = CallOptions(timeout: .seconds(1))
        let page = try? await TenantsClient(channel: channel).list(request, options: options)
        return (page?.tenants ?? []).map(\.tenantID.string).filter { !$0.isEmpty }
    }
}

/// A line that is being typed, and the candidates for its last word. Pure.
struct Completion {
    /// The beginning of the last word, which is completed.
    let current: String
    /// The flags with values before the last word.
    private(set) var arguments = Arguments()
    private var path: [String] = []
    private var command: Command?
    private var operandCount = 0
    /// The flag whose value is being typed.
    private var openFlag: Flag?

    init(of words: [String]) {
        current = words.last ?? ""
        for word in words.dropLast() {
            if let flag = openFlag {
                arguments.values[flag.name] = word
                openFlag = nil
            } else if word.hasPrefix("-"), word != "-" {
                take(flag: word)
            } else if command != nil {
                operandCount += 1
            } else {
                path.append(word)
                command = CommandTree.commands.first { $0.path == path }
            }
        }
    }

    private var flags: [Flag] { command?.allFlags ?? GlobalFlags.all }

    private mutating func take(flag word: String) {
        let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
        let found = flags.first { flag in
            parts[0] == "--\(flag.name)" || flag.short.map { parts[0] == "-\($0)" } == true
        }
        guard let found, found.placeholder != nil else { return }
        if parts.count == 2 { arguments.values[found.name] = parts[1] } else { openFlag = found }
    }

    /// The operand that is being typed, by its name in help.
    private var operand: String? {
        guard let command, operandCount < command.operands.count else { return nil }
        return command.operands[operandCount].usage.filter { !"<>[]".contains($0) }
    }

    /// Whether the last word is a tenant's id.
    private var wantsTenants: Bool {
        if let flag = openFlag { return ["tenant", "scope-tenant", "template"].contains(flag.name) }
        guard !current.hasPrefix("-"), let operand else { return false }
        return operand == "tenant-id" || command?.path == ["tenant", "copy-settings"]
    }

    /// Asks the server for the tenants that may stand for the last word: one page of those that begin as it does. Nil:
    /// the last word is no tenant's id.
    var tenantsRequest: TenantsListRequest? {
        guard wantsTenants else { return nil }
        let filter = current.isEmpty ? nil : TenantFilter(tenantIDPrefix: Text(current))
        return TenantsListRequest(pageSize: 1_000, filter: filter)
    }

    func candidates(contexts: [String]) -> [String] {
        if let flag = openFlag { return values(of: flag, contexts: contexts) }
        if current.hasPrefix("-") { return flags.map { "--\($0.name)" } }
        guard let command else {
            let next = CommandTree.commands.map { $0.path }.filter { $0.starts(with: path) && $0.count > path.count }
            return Set(next.map { $0[path.count] }).sorted()
        }
        if command.path[0] == "context", operand == "name", command.path[1] != "add" { return contexts }
        return operand == "method" || operand == "method|message"
            ? ProtocolSchema.shared.methods.map(\.fullName) : []
    }

    private func values(of flag: Flag, contexts: [String]) -> [String] {
        switch flag.name {
        case "context": return contexts
        case "role": return APIKeyCommands.roles.map(\.0)
        case "output": return Output.Format.allCases.map(\.rawValue)
        case "hash-algo": return HashAlgorithm.names
        case "format": return UserFileFormat.allCases.map(\.rawValue)
        default: break
        }
        // A placeholder like "true|false" names every value.
        let choices = (flag.placeholder ?? "").split(separator: "|").map(String.init)
        return choices.count > 1 && choices.allSatisfy { $0.allSatisfy { $0.isLowercase || $0 == "-" } } ? choices : []
    }
}
