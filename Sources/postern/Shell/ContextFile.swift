import Base
import JSON
import PosternClient

/// Servers, tenants and keys by name: $XDG_CONFIG_HOME/postern/contexts.json, readable by its owner only. It holds no
/// key, only the path of the file that does.
struct ContextFile: Sendable {
    struct Context: Sendable, Equatable {
        var name: String
        var server: String
        var tenant: String
        var apiKeyFile: String
        /// Changes on its server need a confirmation, whether a flag, a variable or a context named the server.
        var isProduction = false
        /// Nil: plain text.
        var tls: TLSOptions?
    }

    let path: String
    private(set) var contexts: [Context] = []
    private(set) var current: String?

    init(environment: [String: String]) throws(CommandError) {
        let home = environment["HOME"] ?? ""
        let configured = environment["XDG_CONFIG_HOME"] ?? ""
        path = (configured.isEmpty ? home + "/.config" : configured) + "/postern/contexts.json"
        guard File.exists(path) else { return }
        let bytes = try File.read(path)
        do throws(JSONError) {
            try read(JSONValue(parsing: bytes))
        } catch {
            throw CommandError("\(path): \(error)")
        }
    }

    private mutating func read(_ json: JSONValue) {
        current = json["current"]?.string
        contexts = (json["contexts"]?.array ?? []).map { entry in
            Context(
                name: entry["name"]?.string ?? "", server: entry["server"]?.string ?? "",
                tenant: entry["tenant"]?.string ?? "", apiKeyFile: entry["api_key_file"]?.string ?? "",
                isProduction: entry["production"] == true,
                tls: entry["tls"].flatMap { $0.object == nil ? nil : $0 }.map { tls in
                    TLSOptions(
                        caFile: tls["ca_file"]?.string ?? "", serverName: tls["server_name"]?.string ?? "",
                        certificateFile: tls["certificate_file"]?.string ?? "", keyFile: tls["key_file"]?.string ?? "")
                })
        }
    }

    subscript(name: String) -> Context? { contexts.first { $0.name == name } }

    /// The named context, which must exist, or else the current one.
    func selected(named name: String?) throws(CommandError) -> Context? {
        guard let name = name ?? current else { return nil }
        return try existing(name)
    }

    func existing(_ name: String) throws(CommandError) -> Context {
        if let context = self[name] { return context }
        throw CommandError(
            "there is no context \(name)",
            hint: nearest(to: name, in: contexts.map(\.name)).map { "did you mean \($0)?" } ?? "postern context list",
            exitCode: .notFound)
    }

    mutating func put(_ context: Context) {
        remove(context.name)
        contexts.append(context)
        contexts.sort { $0.name < $1.name }
    }

    mutating func remove(_ name: String) { contexts.removeAll { $0.name == name } }

    mutating func use(_ name: String?) { current = name }

    func save() throws(CommandError) {
        let json = JSONValue.object([
            .init("current", current.map { .string(Text($0)) } ?? .null),
            .init("contexts", .array(contexts.map(\.json))),
        ])
        try File.replace(path, with: json.prettyPrinted() + [0x0A])
    }
}

extension TLSOptions? {
    fileprivate var json: JSONValue {
        guard let self else { return .null }
        return [
            "ca_file": .string(Text(self.caFile)), "server_name": .string(Text(self.serverName)),
            "certificate_file": .string(Text(self.certificateFile)), "key_file": .string(Text(self.keyFile)),
        ]
    }
}

extension ContextFile.Context {
    var json: JSONValue {
        [
            "name": .string(Text(name)), "server": .string(Text(server)), "tenant": .string(Text(tenant)),
            "api_key_file": .string(Text(apiKeyFile)), "production": .bool(isProduction), "tls": tls.json,
        ]
    }
}
