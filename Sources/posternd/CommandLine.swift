import Base
import Glibc
import JSON

/// The request of the command line.
struct Invocation {
    enum Action {
        case serve
        case printConfiguration
        case recoverAdmin
        case acceptRollback
        case verifyStore
        case checkBackup(String)
        /// As `checkBackup`, but a restore is about to follow.
        case checkRestore(String)
        case restoreBackup(String)
        case beginCluster
        case leaveCluster
        case rejoinCluster
        case version
        case help

        var needsNoConfiguration: Bool {
            switch self {
            case .version, .help: true
            default: false
            }
        }
    }

    var action = Action.serve
    var configuration = Configuration()
    /// Variables that look like settings but are not, such as Kubernetes' POSTERN_SERVICE_HOST.
    private(set) var ignoredVariables: [String] = []

    static let helpText: String = {
        var text = """
            posternd: the Postern authentication server.

              posternd [--config FILE] [flags]   serve until SIGTERM
              posternd --print-config [flags]    print the effective configuration as JSON and exit
              posternd --recover-admin [flags]   with the server stopped: make another project-admin API key and exit
              posternd --accept-clock [flags]    serve; the machine's clock is right although the store has seen later
              posternd --accept-rollback [flags] with the server stopped: let a store start again that lost
                                                 transactions, or that comes from a backup; writes an event
              posternd --verify-store [flags]    with the server stopped: read the whole store and say what is
                                                 damaged; exit status 0 = sound, 65 = damaged
              posternd --check-backup FILE [flags]    verify a backup; with the server stopped, also say what
                                                 restoring it would undo; exit status 0 = sound, 65 = damaged
              posternd --check-restore FILE [flags]   the same, where no server may run: what --restore-backup would do
              posternd --restore-backup FILE [flags]  with the server stopped: put the store of a backup in the place of
                                                 this one, which is kept under another name
              posternd --cluster-init --journal URL [flags]   with the server stopped: make its store the first of a
                                                 new cluster, whose journal is in that database
              posternd --cluster-leave [flags]   with the server stopped: make its store one of its own again
              posternd --cluster-rejoin --journal URL [flags]   with the server stopped: put the cluster's newest
                                                 snapshot in the place of its store, which is kept under another name
              posternd --version | --help

            Every setting is a flag, an environment variable and a key of the file, in that order of precedence.


            """
        for setting in Setting.all {
            text += "  \(setting.flag)  (\(setting.variable))\n      \(setting.help)\n"
        }
        return text
    }()

    /// The actions by their flags, without those that need a value.
    private static let actions: [String: Action] = [
        "--help": .help, "-h": .help, "--version": .version, "--print-config": .printConfiguration,
        "--recover-admin": .recoverAdmin, "--accept-rollback": .acceptRollback, "--verify-store": .verifyStore,
        "--cluster-init": .beginCluster, "--cluster-leave": .leaveCluster,
        "--cluster-rejoin": .rejoinCluster,
    ]

    /// Reads the file (`--config` or POSTERN_CONFIG), then the environment, then the flags over it.
    init(arguments: [String], environment: [String: String]) throws {
        var flags: [(setting: Setting, value: String)] = []
        // An empty variable counts as unset, as one is that a unit or a container passes on without a value.
        let environment = environment.filter { !$0.value.isEmpty }
        var (file, acceptsClock) = (environment["POSTERN_CONFIG"], false)
        var (rest, given) = (arguments[...], Set<String>())
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            func value() throws -> String {
                if parts.count == 2 { return parts[1] }
                guard let next = rest.popFirst() else {
                    throw ConfigurationError(description: "\(parts[0]): needs a value")
                }
                return next
            }
            try Self.check(parts, &given)
            switch parts[0] {
            case "--check-backup": try choose(.checkBackup(value()), by: parts[0])
            case "--check-restore": try choose(.checkRestore(value()), by: parts[0])
            case "--restore-backup": try choose(.restoreBackup(value()), by: parts[0])
            case "--accept-clock": acceptsClock = true
            case "--config": file = try value()
            default:
                if let simple = Self.actions[parts[0]] {
                    try choose(simple, by: parts[0])
                    continue
                }
                guard let setting = Setting.all.first(where: { $0.flag == parts[0] }) else {
                    throw ConfigurationError(description: "\(parts[0]): no such flag; see posternd --help")
                }
                if case .bool = setting.place, parts.count == 1 {
                    flags.append((setting, "true"))
                } else {
                    flags.append((setting, try value()))
                }
            }
        }
        if action.needsNoConfiguration { return }
        if let file { try Self.apply(file: file, to: &configuration) }
        try apply(environment: environment)
        for (setting, value) in flags { try setting.apply(value, to: &configuration, source: setting.flag) }
        configuration = try configuration.validated()
        configuration.acceptsClock = acceptsClock
    }

    /// Refuses a flag that was given before, and a value for a flag that takes none.
    private static func check(_ parts: [String], _ given: inout Set<String>) throws {
        let flag = parts[0]
        guard given.insert(flag).inserted else { throw ConfigurationError(description: "\(flag): given twice") }
        let takesValue = actions[flag] == nil && flag != "--accept-clock"
        guard takesValue || parts.count == 1 else {
            throw ConfigurationError(description: "\(flag): takes no value")
        }
    }

    /// Notes what is to be done. Only one thing is done, so a second one is refused; `--help` and `--version` come
    /// before everything else.
    private mutating func choose(_ chosen: Action, by flag: String) throws {
        if chosen.needsNoConfiguration { return action = chosen }
        if action.needsNoConfiguration { return }
        guard case .serve = action else {
            throw ConfigurationError(description: "\(flag): cannot be done together with what was asked for before it")
        }
        action = chosen
    }

    /// Variables that other programs read, and POSTERN_CONFIG, which is read before.
    private static let notOurs: Set<String> = [
        "POSTERN_CONFIG", "POSTERN_KEY_FILE", "POSTERN_SERVER", "POSTERN_TENANT", "POSTERN_CONTEXT",
        "POSTERN_TLS", "POSTERN_CA_FILE", "POSTERN_SERVER_NAME", "POSTERN_CERT", "POSTERN_KEY",
        "POSTERN_QUICKSTART_DATA", "POSTERN_QUICKSTART_PORT", "POSTERN_QUICKSTART_HTTP_PORT",
    ]

    private mutating func apply(environment: [String: String]) throws {
        for (name, value) in environment where name.hasPrefix("POSTERN_") && !Self.notOurs.contains(name) {
            guard let setting = Setting.all.first(where: { $0.variable == name }) else {
                ignoredVariables.append(name)
                continue
            }
            try setting.apply(value, to: &configuration, source: "environment \(name)")
        }
        ignoredVariables.sort()
    }

    /// Logs the ignored variables, so that a misspelt setting is noticed.
    func warn(_ log: Log) {
        for name in ignoredVariables {
            log.warning("environment variable ignored: it is no setting", ["variable": .text(name)])
        }
    }

    private static func apply(file path: String, to configuration: inout Configuration) throws {
        let bytes: [UInt8]
        do {
            bytes = try Files.read(path, byteCountMax: 1 << 20)
        } catch {
            throw ConfigurationError(description: "config file \(path): \(error)")
        }
        let json: JSONValue
        do {
            json = try JSONValue(parsing: bytes)
        } catch {
            throw ConfigurationError(description: "config file \(path): \(error)")
        }
        guard let members = json.object else {
            throw ConfigurationError(description: "config file \(path): must hold one JSON object")
        }
        for member in members {
            guard let setting = Setting.all.first(where: { $0.key == member.name.string }) else {
                throw ConfigurationError(description: "config file \(path): \(member.name): no such setting")
            }
            try setting.apply(member.value, to: &configuration, source: "config file \(path): \(member.name)")
        }
    }
}
