import Base
import Glibc
import JSON
import Outbound
import TLS
import Transport

/// Everything an operator can set, from flags, then environment, then one JSON file, then the defaults.
///
/// The key `listen_address` is the flag `--listen-address`, the variable `POSTERN_LISTEN_ADDRESS` and the member
/// `"listen_address"` of the file. Unknown and duplicate flags and members are refused; an unknown variable is ignored
/// with a warning, because others name variables after us: Kubernetes does for every service called "postern".
struct Configuration {
    var dataDirectory = "postern-data"
    var masterKeyFile = ""
    var listenAddress = "127.0.0.1:7400"
    var httpAddress = "127.0.0.1:7401"
    var allowPlaintext = false
    var tlsCertificateFile = ""
    var tlsKeyFile = ""
    var tlsMinVersion = "1.3"
    var tlsClientCAFile = ""
    var tlsClientCRLFile = ""
    var tlsRequired = false
    var projectID = "postern"
    var issuer = ""
    var actionURL = ""
    var signingAlgorithm = "RS256"
    var durability = "synced"
    var mapBytes: Int64 = 64 << 30
    var threads: Int64 = 0
    var passwordWorkers: Int64 = 0
    var connectionsMax: Int64 = 10_000
    var connectionsPerAddressMax: Int64 = 0
    var connectionsUnauthenticatedPerAddressMax: Int64 = 256
    var connectionsPerCallerMax: Int64 = 0
    var streamsPerCallerMax: Int64 = 3_000
    var idleTimeoutSeconds: Int64 = 3_600
    var drainTimeoutSeconds: Int64 = 10
    var outboundCAFile = ""
    var backupDirectory = ""
    var backupEverySeconds: Int64 = 86_400
    var backupKeep: Int64 = 7
    var logLevel = "info"
    var accessLog = "off"
    var accessLogOneIn: Int64 = 1
    var slowCallMillis: Int64 = 1_000
    /// For one start, so it is a flag only.
    var acceptsClock = false

    /// The issuer that tokens carry: as set, or the HTTP port as this machine reaches it, where the keys are served.
    /// Without a port that is known in advance the issuer is a name that leads nowhere.
    var effectiveIssuer: String {
        if !issuer.isEmpty { return issuer }
        guard let address = SocketAddress(httpAddress), address.port != 0 else {
            return "https://postern.local/\(projectID)"
        }
        let onThisMachine = ["0.0.0.0": "127.0.0.1", "::": "::1"][address.host] ?? address.host
        return "http://\(SocketAddress(host: onThisMachine, port: address.port) ?? address)"
    }
    /// The page that links in mails lead to: as set, or below the issuer.
    var effectiveActionURL: String { actionURL.isEmpty ? "\(effectiveIssuer)/action" : actionURL }
    /// Whether the RPC port speaks TLS.
    var hasTLS: Bool { !tlsCertificateFile.isEmpty }
    var effectiveMasterKeyFile: String { masterKeyFile.isEmpty ? "\(dataDirectory)/master-key" : masterKeyFile }
    var effectiveThreads: Int { threads > 0 ? Int(threads) : max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
    var effectivePasswordWorkers: Int { passwordWorkers > 0 ? Int(passwordWorkers) : effectiveThreads }
}

struct ConfigurationError: Error, CustomStringConvertible {
    var description: String
}

/// One setting: its key, where it lives, what it means.
struct Setting {
    enum Place {
        case text(WritableKeyPath<Configuration, String>)
        case integer(WritableKeyPath<Configuration, Int64>, ClosedRange<Int64>)
        case bool(WritableKeyPath<Configuration, Bool>)
    }

    let key: String
    let place: Place
    let help: String

    var flag: String { "--" + key.split(separator: "_").joined(separator: "-") }
    var variable: String { "POSTERN_" + key.uppercased() }

    static var all: [Setting] {
        [
            Setting(key: "data_directory", place: .text(\.dataDirectory), help: "where the database and keys live"),
            Setting(
                key: "master_key_file", place: .text(\.masterKeyFile),
                help: "32 random bytes that seal every key at rest (default <data_directory>/master-key)"),
            Setting(key: "listen_address", place: .text(\.listenAddress), help: "address:port of the RPC port"),
            Setting(
                key: "http_address", place: .text(\.httpAddress),
                help: "address:port of /healthz, /metrics and the JWKS; \"off\" for none"),
            Setting(
                key: "allow_plaintext", place: .bool(\.allowPlaintext),
                help: "take plain text from other machines: credentials and tokens cross the network in clear"),
            Setting(
                key: "tls_certificate_file", place: .text(\.tlsCertificateFile),
                help: "PEM file of the RPC port's certificate and its issuers; read again when it changes"),
            Setting(
                key: "tls_key_file", place: .text(\.tlsKeyFile),
                help: "PEM file of the certificate's private key, without a password"),
            Setting(
                key: "tls_min_version", place: .text(\.tlsMinVersion),
                help: "1.3 or 1.2: the oldest version of TLS that is spoken"),
            Setting(
                key: "tls_client_ca_file", place: .text(\.tlsClientCAFile),
                help: "PEM file of the authorities whose certificates clients may show; read again when it changes"),
            Setting(
                key: "tls_client_crl_file", place: .text(\.tlsClientCRLFile),
                help: "PEM file of what these authorities have revoked; read again when it changes"),
            Setting(
                key: "tls_required", place: .bool(\.tlsRequired),
                help: "refuse plain text from this machine too"),
            Setting(key: "project_id", place: .text(\.projectID), help: "the audience (aud) of ID tokens"),
            Setting(
                key: "issuer", place: .text(\.issuer),
                help: "the issuer (iss) of ID tokens (default http://<http_address>, for this machine only)"),
            Setting(
                key: "action_url", place: .text(\.actionURL),
                help: "the page that links in mails lead to (default <issuer>/action); tenants may have their own"),
            Setting(
                key: "signing_algorithm", place: .text(\.signingAlgorithm),
                help: "RS256, ES256 or EdDSA: of the first signing key; later ones are made by rotation"),
            Setting(
                key: "durability", place: .text(\.durability),
                help: "synced: acknowledged is on disk; relaxed: a crash of the machine may lose the last moments"),
            Setting(
                key: "map_bytes", place: .integer(\.mapBytes, 1 << 20...1 << 42),
                help: "address space reserved for the database, its greatest size"),
            Setting(
                key: "threads", place: .integer(\.threads, 0...256), help: "event loops (0 = one per core)"),
            Setting(
                key: "password_workers", place: .integer(\.passwordWorkers, 0...256),
                help: "threads that hash passwords (0 = one per core)"),
            Setting(
                key: "connections_max", place: .integer(\.connectionsMax, 1...1_000_000),
                help: "connections in all; the limit of open files (RLIMIT_NOFILE) may allow less"),
            Setting(
                key: "connections_per_address_max", place: .integer(\.connectionsPerAddressMax, 0...1_000_000),
                help: "connections from one address, IPv6 from one /64 (0 = connections_max)"),
            Setting(
                key: "connections_unauthenticated_per_address_max",
                place: .integer(\.connectionsUnauthenticatedPerAddressMax, 1...1_000_000),
                help: "of these without a credential; raise it where all clients come through one proxy"),
            Setting(
                key: "connections_per_caller_max", place: .integer(\.connectionsPerCallerMax, 0...1_000_000),
                help: "connections that use the same credential (0 = four fifths of connections_max)"),
            Setting(
                key: "streams_per_caller_max", place: .integer(\.streamsPerCallerMax, 1...10_000_000),
                help: "streams that use the same credential, such as watched sessions"),
            Setting(
                key: "idle_timeout_seconds", place: .integer(\.idleTimeoutSeconds, 1...86_400),
                help: "a connection without traffic is closed after this"),
            Setting(
                key: "drain_timeout_seconds", place: .integer(\.drainTimeoutSeconds, 0...3_600),
                help: "how long a stop waits for calls in flight"),
            Setting(
                key: "outbound_ca_file", place: .text(\.outboundCAFile),
                help: "PEM file of the certificates to trust when providers are asked (default: the system's)"),
            Setting(
                key: "backup_directory", place: .text(\.backupDirectory),
                help: "where backups are written, best on another disk; it must exist (default: none are taken)"),
            Setting(
                key: "backup_every_seconds", place: .integer(\.backupEverySeconds, 60...31_536_000),
                help: "the time from one backup to the next"),
            Setting(
                key: "backup_keep", place: .integer(\.backupKeep, 1...10_000),
                help: "how many backups are kept; older ones are deleted"),
            Setting(
                key: "log_level", place: .text(\.logLevel), help: "debug, info, notice, warning or error"),
            Setting(
                key: "access_log", place: .text(\.accessLog),
                help: "a line for each call: off, stdout, stderr, or a file, which SIGHUP opens again"),
            Setting(
                key: "access_log_one_in", place: .integer(\.accessLogOneIn, 1...1_000_000),
                help: "one call in so many gets its line, by chance (1 = every call)"),
            Setting(
                key: "slow_call_millis", place: .integer(\.slowCallMillis, 0...3_600_000),
                help: "a unary call that takes as long gets a line in the log, ten a second at most (0 = none)"),
        ]
    }

    /// Sets this from text: a flag's or a variable's value.
    func apply(_ text: String, to configuration: inout Configuration, source: String) throws {
        switch place {
        case .text(let path): configuration[keyPath: path] = text
        case .integer(let path, let range):
            guard let number = Int64(text), range.contains(number) else {
                throw ConfigurationError(
                    description: "\(source): must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            configuration[keyPath: path] = number
        case .bool(let path):
            guard let value = Bool(text) else {
                throw ConfigurationError(description: "\(source): must be true or false")
            }
            configuration[keyPath: path] = value
        }
    }

    /// Sets this from the file's JSON, where the type must be right as well.
    func apply(_ value: JSONValue, to configuration: inout Configuration, source: String) throws {
        switch (place, value) {
        case (.text, .string(let text)): try apply(text.string, to: &configuration, source: source)
        case (.integer, .integer(let number)): try apply("\(number)", to: &configuration, source: source)
        case (.bool, .bool(let flag)): try apply("\(flag)", to: &configuration, source: source)
        case (.text, _): throw ConfigurationError(description: "\(source): must be a string")
        case (.integer, _): throw ConfigurationError(description: "\(source): must be a whole number")
        case (.bool, _): throw ConfigurationError(description: "\(source): must be true or false")
        }
    }

    func json(in configuration: Configuration) -> JSONValue {
        switch place {
        case .text(let path): .string(Text(configuration[keyPath: path]))
        case .integer(let path, _): .integer(configuration[keyPath: path])
        case .bool(let path): .bool(configuration[keyPath: path])
        }
    }
}

extension Configuration {
    /// Checks what single settings cannot: combinations, and values that would start a server nobody wants.
    func validated() throws -> Configuration {
        func require(_ condition: Bool, _ message: String) throws {
            if !condition { throw ConfigurationError(description: message) }
        }
        func isURL(_ text: String) -> Bool {
            Text(validating: [UInt8](text.utf8)).map { HTTPURL($0, for: .link) != nil } ?? false
        }
        try require(!dataDirectory.isEmpty, "data_directory: must not be empty")
        try require(
            ["off", "stdout", "stderr"].contains(accessLog) || accessLog.utf8.contains(UInt8(ascii: "/")),
            "access_log: must be off, stdout, stderr or a path with a slash in it")
        try require(
            ["RS256", "ES256", "EdDSA"].contains(signingAlgorithm), "signing_algorithm: must be RS256, ES256 or EdDSA")
        try require(
            tlsCertificateFile.isEmpty == tlsKeyFile.isEmpty,
            "tls_certificate_file, tls_key_file: one is of no use without the other")
        try require(
            TLSVersion(rawValue: tlsMinVersion) != nil, "tls_min_version: must be 1.3 or 1.2")
        try require(
            tlsClientCAFile.isEmpty || hasTLS, "tls_client_ca_file: needs tls_certificate_file and tls_key_file")
        try require(
            tlsClientCRLFile.isEmpty || !tlsClientCAFile.isEmpty, "tls_client_crl_file: needs tls_client_ca_file")
        try require(!tlsRequired || hasTLS, "tls_required: needs tls_certificate_file and tls_key_file")
        try require(
            !(tlsRequired && allowPlaintext), "tls_required, allow_plaintext: one excludes the other")
        try require(["synced", "relaxed"].contains(durability), "durability: must be synced or relaxed")
        try require(
            Log.Level.allCases.contains { $0.name == logLevel },
            "log_level: must be debug, info, notice, warning or error")
        let isNamed =
            !projectID.isEmpty && projectID.utf8.count <= 128
            && projectID.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") }
        try require(isNamed, "project_id: must be 1 to 128 printable characters")
        try require(
            isURL(effectiveIssuer), "issuer: must be an http or https URL with a host")
        try require(
            actionURL.isEmpty || isURL(actionURL), "action_url: must be an http or https URL with a host")
        return self
    }

    /// The same with every value that follows from others or from the machine, as a server that starts here has it.
    func resolved(log: Log) -> Configuration {
        var limits = Limits()
        limits.setConnections(self, descriptors: Descriptors.raise(), log: log)
        var resolved = self
        resolved.masterKeyFile = effectiveMasterKeyFile
        resolved.issuer = effectiveIssuer
        resolved.actionURL = effectiveActionURL
        resolved.threads = Int64(effectiveThreads)
        resolved.passwordWorkers = Int64(effectivePasswordWorkers)
        resolved.connectionsMax = Int64(limits.connectionsMax)
        resolved.connectionsPerAddressMax = Int64(limits.connectionsPerAddressMax)
        resolved.connectionsPerCallerMax = Int64(limits.connectionsPerCallerMax)
        return resolved
    }

    /// The whole configuration as a file that gives the same result.
    var printed: String {
        let members = Setting.all.map { JSONValue.Member(Text($0.key), $0.json(in: self)) }
        return String(decoding: JSONValue.object(members).prettyPrinted(), as: UTF8.self)
    }
}
