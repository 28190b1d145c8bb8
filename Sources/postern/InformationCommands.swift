import Base
import JSON
import Messages

/// postern rpc, completion, version and help: what the program knows without a server.
enum InformationCommands {
    static let all = [rpcList, completion, version, exitCodes]

    static let rpcList = Command(
        path: ["rpc", "list"], summary: "Lists the methods of the protocol this program speaks.", example: "rpc list",
        isReadOnly: true
    ) { session in
        session.output.print(Method.all)
    }

    static let completion = Command(
        path: ["completion", "bash"], summary: "Prints what makes bash complete commands and flags.",
        example: "completion bash > ~/.local/share/bash-completion/completions/postern", isReadOnly: true
    ) { session in
        session.console.print(BashCompletion.script)
    }

    static let version = Command(
        path: ["version"], summary: "Prints this program's version.", example: "version", isReadOnly: true
    ) { session in
        session.console.write([UInt8](CommandLineTool.versionLine.utf8))
    }

    static let exitCodes = Command(
        path: ["help", "exit-codes"], summary: "Explains what the exit codes mean.", example: "help exit-codes",
        isReadOnly: true
    ) { session in
        let rows = ExitCode.allCases.map { (String($0.rawValue), $0.meaning) }
        session.console.write([UInt8](describe(rows).utf8))
    }
}

private struct Method: Record {
    static let columns = ["method"]

    let name: String

    static var all: [Method] {
        PublishedFile.all.flatMap { file in
            file.services.flatMap { service in
                file.symbols.map(\.string).filter { $0.hasPrefix(service.string + ".") }.map { symbol in
                    Method(name: "\(service)/\(symbol.dropFirst(service.string.count + 1))")
                }
            }
        }
    }

    var id: String { name }
    var json: JSONValue { ["method": .string(Text(name))] }
}

/// Words by position, flags by what starts with a dash.
enum BashCompletion {
    static var script: String {
        var cases: [String] = []
        for depth in [1, 0] {
            let paths = CommandTree.commands.map { $0.path }.filter { $0.count > depth }
            let prefixes = Set(paths.map { $0.prefix(depth).joined(separator: " ") })
            for prefix in prefixes.sorted() {
                let below = paths.filter { $0.prefix(depth).joined(separator: " ") == prefix }
                let next = Set(below.map { $0[depth] }).sorted().joined(separator: " ")
                cases.append("        \"\(prefix)\") words=\"\(next)\" ;;")
            }
        }
        let flags = CommandTree.commands.map { command in
            "        \"\(command.name)\") words=\"\(names(command.flags))\" ;;"
        }
        return """
            _postern() {
                local current=${COMP_WORDS[COMP_CWORD]} path="" words="" word index
                for ((index = 1; index < COMP_CWORD; index++)); do
                    word=${COMP_WORDS[index]}
                    case $word in
                    \(valueFlags)) ((index++)) ;;
                    -*) ;;
                    *) path=${path:+$path }$word ;;
                    esac
                done
                case $current in
                -*)
                    case $path in
            \(flags.joined(separator: "\n"))
                    esac
                    words="$words \(names(GlobalFlags.all))"
                    ;;
                *)
                    case $path in
            \(cases.joined(separator: "\n"))
                    esac
                    ;;
                esac
                COMPREPLY=($(compgen -W "$words" -- "$current"))
            }
            complete -o default -F _postern postern
            """
    }

    private static func names(_ flags: [Flag]) -> String { flags.map { "--\($0.name)" }.joined(separator: " ") }

    /// Global flags that take the next word away.
    private static var valueFlags: String {
        var names: [String] = []
        for flag in GlobalFlags.all where flag.placeholder != nil {
            names.append("--\(flag.name)")
            if let short = flag.short { names.append("-\(short)") }
        }
        return names.joined(separator: " | ")
    }
}
