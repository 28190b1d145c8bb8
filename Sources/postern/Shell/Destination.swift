import Base
import PosternClient

/// The server, tenant and key of a command, and their source: a flag, the context that --context names, the
/// environment, the current context, or none of these.
///
/// The sources are listed by precedence. One rule stands above it: the tenant and the key that were set for one server
/// never go to another. So a context is used as a whole or, when a higher source names another server, not at all.
///
///     --server b, current context (a, tenant acme, key k):   b, the default pool, no key
///     POSTERN_KEY_FILE=x, --context c (c, tenant acme):      c, tenant acme, key x
struct Destination: Sendable, Equatable {
    let server: String
    /// The source that named the server, for messages.
    let source: String
    /// Empty: the default pool, or the tenant the key is bound to.
    let tenant: String
    /// Nil: calls go without a credential.
    let keyFile: String?
    /// Nil: plain text. It belongs to the server, as the key does.
    let tls: TLSOptions?
    /// A key that was set for another server, for messages. Nil: there is no such key, or another key is used.
    let unusedKey: String?
    /// A tenant that was set for another server, for messages. Nil: there is no such tenant, or a source that is used
    /// names one.
    let unusedTenant: String?
    /// The context that marks this server as production, or one of the servers in the list. Servers are compared as in
    /// `isSame`.
    let productionContext: String?

    static let defaultServer = "127.0.0.1:7400"
    /// Where posternd writes the first admin key when it is started in the same directory.
    static let defaultDataDirectory = "postern-data"

    /// The settings of one source. A source without a server is for any server.
    fileprivate struct Place {
        let name: String
        var server: String?
        var tenant: String?
        var keyFile: String?
        var tls: TLSOptions?
    }

    init(
        _ arguments: Arguments, environment: [String: String], contexts: ContextFile
    ) throws(CommandError) {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        try Self.checkNotEmpty(arguments)
        func flag(_ name: String) -> String? { arguments.value(name) }
        // An empty tenant is a value, in --tenant and in POSTERN_TENANT: no tenant is named, whatever a context says.
        let flags = Place(
            name: "--server", server: flag("server"), tenant: arguments.value("tenant"), keyFile: flag("key-file"),
            tls: TLSOptions(isOn: arguments.isSet("tls")) { flag($0) })
        let surroundings = Place(
            name: "POSTERN_SERVER", server: variable("POSTERN_SERVER"), tenant: environment["POSTERN_TENANT"],
            keyFile: variable("POSTERN_KEY_FILE"), tls: try TLSOptions(environment: environment))
        let named = try arguments.value("context").map { name throws(CommandError) in try contexts.existing(name) }
        if let named, let server = flags.server, !Self.isSame(server, named.server) {
            throw .usage(
                "--server \(server) is not the server of the context \(named.name), \(named.server)",
                hint: "leave one of them out")
        }
        // The current context is not read when --context names one: it may be gone.
        let current = named == nil ? try contexts.selected(named: nil) : nil
        let places =
            [named.map { Place("context \($0.name)", $0) }, surroundings].compactMap(\.self)
            + [current.map { Place("current context \($0.name)", $0) }].compactMap(\.self)
        // A named context tells more as a source than the flag that repeats its server.
        let chosen = places.first { $0.server != nil }
        let byFlag = named == nil ? flags.server.map { ($0, flags.name) } : nil
        let (server, source) =
            byFlag ?? chosen.flatMap { place in place.server.map { ($0, place.name) } }
            ?? (Self.defaultServer, "the default")
        self.server = server
        self.source = source
        let usable = [flags] + places.filter { $0.server.map { Self.isSame($0, server) } ?? true }
        let tenant = usable.lazy.compactMap(\.tenant).first
        self.tenant = tenant ?? ""
        unusedTenant = tenant == nil ? Self.unusedTenant(of: places) : nil
        let keyFile = usable.lazy.compactMap(\.keyFile).first ?? Self.defaultKeyFile(for: server, environment)
        self.keyFile = keyFile
        tls = usable.lazy.compactMap(\.tls).first
        unusedKey = keyFile != nil ? nil : places.first { $0.keyFile != nil }.map { Self.describe($0) }
        productionContext = Self.productionContext(of: server, in: contexts)
    }

    /// Refuses empty values, such as of a script's variable that is not set. Taken as not given, they would lead to
    /// another server or key, or to plain text.
    static func checkNotEmpty(_ arguments: Arguments) throws(CommandError) {
        let names = ["server", "key-file", "ca-file", "server-name", "cert", "key"]
        guard let name = names.first(where: { arguments.value($0) == "" }) else { return }
        throw .usage("--\(name) is empty", hint: "leave it out, or say what it is")
    }

    private static func productionContext(of server: String, in contexts: ContextFile) -> String? {
        let asked = addresses(server)
        return contexts.contexts.first { $0.isProduction && !addresses($0.server).isDisjoint(with: asked) }?.name
    }

    private static func unusedTenant(of places: [Place]) -> String? {
        guard let place = places.first(where: { $0.tenant?.isEmpty == false }) else { return nil }
        return "tenant \(place.tenant ?? "") was set for \(place.server ?? "") (\(place.name))"
    }

    private static func describe(_ place: Place) -> String {
        "\(place.keyFile ?? "") was set for \(place.server ?? "") (\(place.name))"
    }

    /// The admin key of a posternd that was started here. It is used only for servers on this machine.
    private static func defaultKeyFile(for server: String, _ environment: [String: String]) -> String? {
        guard isOnThisMachine(server) else { return nil }
        let configured = environment["POSTERN_DATA_DIRECTORY"] ?? ""
        let path = "\(configured.isEmpty ? "./\(defaultDataDirectory)" : configured)/admin-key"
        return File.exists(path) ? path : nil
    }

    /// Whether all of the servers are on this machine.
    static func isOnThisMachine(_ servers: String) -> Bool {
        servers.split(separator: ",", omittingEmptySubsequences: false).allSatisfy { server in
            isAddressOfThisMachine(String(server.drop { $0 == " " }))
        }
    }

    private static func isAddressOfThisMachine(_ server: String) -> Bool {
        if server.hasPrefix("unix:") { return true }
        // A name that begins like an address may belong to anybody.
        return IPAddress(split(server).host)?.reach == .loopback
    }

    /// Whether both name the same servers, in whatever order. An address counts in every notation. Names are not
    /// resolved: two names of one server count as two servers, and nothing is shared between them.
    static func isSame(_ left: String, _ right: String) -> Bool { addresses(left) == addresses(right) }

    /// The addresses in a list with commas between them.
    static func servers(in list: String) -> [String] {
        list.split(separator: ",", omittingEmptySubsequences: false).map { String($0.drop { $0 == " " }) }
    }

    /// Whether two addresses in a list are the same one. Names are not resolved.
    static func namesOneTwice(_ list: String) -> Bool { addresses(list).count < servers(in: list).count }

    /// The addresses in a list, each in the one form in which addresses are compared.
    private static func addresses(_ list: String) -> Set<String> { Set(servers(in: list).map { canonical($0) }) }

    private static func canonical(_ server: String) -> String {
        // Paths distinguish upper and lower case.
        if server.hasPrefix("unix:") { return server }
        let (host, port) = split(server)
        let address = numericAddress(host)?.withoutMapping
        return "\(address?.description ?? host) \(UInt16(port).map { "\($0)" } ?? port)"
    }

    /// The address that a host stands for without a resolver, in any notation: `127.0.0.1`, `127.1`, `::1`. Nil for a
    /// name, and for an IPv6 address with a zone.
    private static func numericAddress(_ host: String) -> IPAddress? {
        if let address = IPAddress(host) { return address }
        // The other notations of an IPv4 address begin with a digit, and none has a colon.
        guard let first = host.utf8.first, (0x30...0x39).contains(first), !host.utf8.contains(0x3A),
            let known = IPAddress.known(Text(host)), known.count == 1
        else { return nil }
        return known.first
    }

    /// The host, without brackets, and the port.
    private static func split(_ server: String) -> (host: String, port: String) {
        let text = server.lowercased()
        let colon = text.lastIndex(of: ":") ?? text.endIndex
        let host = text[..<colon]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let name = String(isBracketed ? host.dropFirst().dropLast() : host)
        return (name == "localhost" ? "127.0.0.1" : name, String(text[colon...].dropFirst()))
    }

    /// One line for people about the server that is about to be changed, and the target of the change there.
    func description(of target: ChangeTarget) -> String {
        let marks = [source, productionContext.map { "production: context \($0)" }].compactMap(\.self)
        let place = "on \(server) (\(marks.joined(separator: ", ")))"
        switch target {
        case .project: return place
        case .named(let name): return "\(place), \(name)"
        case .usualTenant:
            return "\(place), \(ChangeTarget.title(Text(tenant)))" + (tenant.isEmpty ? " (none was named)" : "")
                + (unusedTenant.map { "; not used: \($0)" } ?? "")
        }
    }
}

extension Destination.Place {
    /// A context always sets the tenant, even the default pool. A context without a key leaves the key to other
    /// sources.
    fileprivate init(_ name: String, _ context: ContextFile.Context) {
        self.init(
            name: name, server: context.server, tenant: context.tenant,
            keyFile: context.apiKeyFile.isEmpty ? nil : context.apiKeyFile, tls: context.tls)
    }
}

extension TLSOptions {
    /// The variables that say how TLS is spoken.
    static let variables = ["POSTERN_TLS", "POSTERN_CA_FILE", "POSTERN_SERVER_NAME", "POSTERN_CERT", "POSTERN_KEY"]

    /// The TLS options of the environment. Nil: it does not ask for TLS. An empty variable counts as absent. A
    /// POSTERN_TLS that is neither `true` nor `false` is refused: whoever set it to `1` or `yes` expects TLS.
    init?(environment: [String: String]) throws(CommandError) {
        let isOn: Bool
        switch environment["POSTERN_TLS"] ?? "" {
        case "true": isOn = true
        case "", "false": isOn = false
        case let other: throw .usage("POSTERN_TLS is true or false, not \"\(other)\"")
        }
        self.init(isOn: isOn) { name in
            let variable = "POSTERN_" + name.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
            return environment[variable].flatMap { $0.isEmpty ? nil : $0 }
        }
    }

    /// The TLS options of one source: on if the source says so, or sets any option that is for TLS alone.
    init?(isOn: Bool, _ value: (_ name: String) -> String?) {
        let (caFile, serverName) = (value("ca-file"), value("server-name"))
        let (certificateFile, keyFile) = (value("cert"), value("key"))
        guard isOn || caFile != nil || serverName != nil || certificateFile != nil || keyFile != nil else { return nil }
        self.init(
            caFile: caFile ?? "", serverName: serverName ?? "", certificateFile: certificateFile ?? "",
            keyFile: keyFile ?? "")
    }
}
