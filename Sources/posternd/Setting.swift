import Base
import JSON

/// One setting: its key, its place in `Configuration`, and its meaning.
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
            Setting(
                key: "listen_address", place: .text(\.listenAddress),
                help: "address:port of the RPC port, or unix:/path; several with commas between them"),
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
            Setting(
                key: "http_tls", place: .text(\.httpTLS),
                help: "on: with a certificate, the HTTP port speaks TLS too; off: plain text for everybody"),
            Setting(
                key: "unix_socket_mode", place: .text(\.unixSocketMode),
                help: "who may connect to a Unix domain socket, as of a file that may be written"),
            Setting(
                key: "proxy_protocol_from", place: .text(\.proxyProtocolFrom),
                help: "networks of proxies, such as 10.0.0.0/8, whose connections begin with a PROXY header (v2)"),
            Setting(
                key: "keepalive_seconds", place: .integer(\.keepaliveSeconds, 0...86_400),
                help: "a client that is silent for so long is asked whether it is there (0 = never)"),
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
                key: "signing_key_rotation_days", place: .integer(\.signingKeyRotationDays, 0...3_650),
                help: "how long a signing key signs before the server replaces it by itself (0 = never)"),
            Setting(
                key: "durability", place: .text(\.durability),
                help: "synced: acknowledged is on disk; relaxed: a crash of the machine may lose the last moments"),
            Setting(
                key: "map_bytes", place: .integer(\.mapBytes, 1 << 20...1 << 42),
                help: "address space reserved for the database, its greatest size"),
            Setting(
                key: "threads", place: .integer(\.threads, 0...256),
                help: "event loops (0 = one for each processor that the process may use)"),
            Setting(
                key: "password_workers", place: .integer(\.passwordWorkers, 0...256),
                help: "threads that hash passwords (0 = one for each event loop, as far as the memory goes)"),
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
                key: "journal", place: .text(\.journal),
                help: "postgresql://user@host/database: take part in the cluster whose journal is there; no password "
                    + "in it (default: this server is the only one)"),
            Setting(
                key: "journal_schema", place: .text(\.journalSchema),
                help: "the schema of the cluster's tables in that database"),
            Setting(
                key: "journal_password_file", place: .text(\.journalPasswordFile),
                help: "file with the database's password, read for each connection (default: what libpq finds, such as "
                    + "PGPASSFILE)"),
            Setting(
                key: "when_behind", place: .text(\.whenBehind),
                help:
                    "refuse or serve: what a node does with tokens and credentials that may be revoked, once the "
                    + "journal's engine has been away for a minute"),
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

    /// Sets this from the text of a flag or a variable.
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
