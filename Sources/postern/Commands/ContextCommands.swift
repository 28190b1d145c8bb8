import Base
import PosternClient

/// postern context …
enum ContextCommands {
    static let all = [list, use, add, rm, show]

    static let list = Command(
        path: ["context", "list"], summary: "Lists the contexts.", example: "context list", isReadOnly: true
    ) { session in
        session.output.print(session.contexts.contexts)
        if let current = session.contexts.current {
            session.say("current: \(current)")
            if let context = session.contexts[current] { sayWhatComesFirst(session, context) }
        }
    }

    static let use = Command(
        path: ["context", "use"], summary: "Makes a context the current one.", example: "context use live",
        operands: [.required("name")], isReadOnly: true, prints: .noRecords
    ) { session in
        var file = session.contexts
        let context = try file.existing(session.arguments.operands[0])
        file.use(context.name)
        try file.save()
        session.say("the current context is \(context.name): \(context.server)")
        sayWhatComesFirst(session, context)
    }

    /// Names the variables that come before the current context and differ from it.
    private static func sayWhatComesFirst(_ session: Session, _ context: ContextFile.Context) {
        let environment = session.console.environment
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let server = variable("POSTERN_SERVER"), !Destination.isSame(server, context.server) {
            return session.say("but POSTERN_SERVER is set and comes first: commands go to \(server)")
        }
        // An empty tenant is a value, too.
        if let tenant = environment["POSTERN_TENANT"], tenant != context.tenant {
            session.say("but POSTERN_TENANT is set and comes first: \(TenantCommands.title(Text(tenant)))")
        }
        if let keyFile = variable("POSTERN_KEY_FILE"), keyFile != context.apiKeyFile {
            session.say("but POSTERN_KEY_FILE is set and comes first: \(keyFile)")
        }
        do throws(CommandError) {
            guard let tls = try TLSOptions(environment: environment), tls != context.tls else { return }
            let names = TLSOptions.variables.filter { variable($0) != nil }
            session.say("but these variables are set and come first for TLS: \(names.joined(separator: ", "))")
        } catch {
            session.say("but commands are refused: \(error.message)")
        }
    }

    static let add = Command(
        path: ["context", "add"],
        summary:
            "Adds a context: --server, --tenant, --key-file and TLS by name. The first one becomes the current one.",
        example: "context add live --server auth.internal:7400 --key-file ~/live.key --production",
        operands: [.required("name")],
        flags: [Flag("replace", "replace the context of this name as a whole: what is not said again is forgotten")],
        isReadOnly: true, prints: .noRecords, takesTenant: true
    ) { session in
        let arguments = session.arguments
        try Destination.checkNotEmpty(arguments)
        guard let server = arguments.value("server") else { throw CommandError.usage("--server is missing") }
        for flag in ["key-file", "ca-file", "cert", "key"] {
            if let path = arguments.value(flag) { try File.checkName(path) }
        }
        var file = session.contexts
        let before = file[arguments.operands[0]]
        if let before, !arguments.isSet("replace") {
            throw CommandError(
                "there is a context \(before.name) already, for \(before.server)",
                hint: "--replace replaces it as a whole", exitCode: .conflict)
        }
        let context = ContextFile.Context(
            name: arguments.operands[0], server: server, tenant: arguments.value("tenant") ?? "",
            apiKeyFile: arguments.value("key-file").map { File.absolute($0) } ?? "",
            isProduction: arguments.isSet("production"),
            tls: TLSOptions(isOn: arguments.isSet("tls")) { name in
                arguments.value(name).map { name == "server-name" ? $0 : File.absolute($0) }
            })
        file.put(context)
        let becomesCurrent = file.contexts.count == 1 && file.current != context.name
        if becomesCurrent { file.use(context.name) }
        try file.save()
        session.say("\(before == nil ? "added to" : "replaced in") \(file.path)")
        if let before, !before.apiKeyFile.isEmpty, before.apiKeyFile != context.apiKeyFile {
            session.say("it no longer uses the key file \(before.apiKeyFile), which stays where it is")
        }
        if becomesCurrent {
            session.say("it is the only one, so it is the current context now: commands go to \(context.server)")
            sayWhatComesFirst(session, context)
        }
    }

    static let rm = Command(
        path: ["context", "rm"], summary: "Forgets a context; the key's file stays.", example: "context rm staging",
        operands: [.required("name")], isReadOnly: true, prints: .noRecords
    ) { session in
        var file = session.contexts
        let context = try file.existing(session.arguments.operands[0])
        file.remove(context.name)
        if file.current == context.name { file.use(nil) }
        try file.save()
        session.say("\(context.name) forgotten")
    }

    static let show = Command(
        path: ["context", "show"], summary: "Shows a context; without a name the current one.",
        example: "context show", operands: [.optional("name")], isReadOnly: true
    ) { session in
        guard let context = try session.contexts.selected(named: session.arguments.operand(0)) else {
            throw CommandError("there is no current context", hint: "postern context use NAME", exitCode: .notFound)
        }
        session.output.print(context)
        if session.arguments.operand(0) == nil { sayWhatComesFirst(session, context) }
    }
}
