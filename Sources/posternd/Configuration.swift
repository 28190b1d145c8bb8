import Base
import Transport

/// Everything an operator can set, from flags, then environment, then one JSON file, then the defaults.
///
/// The key `listen_address` is the flag `--listen-address`, the variable `POSTERN_LISTEN_ADDRESS` and the member
/// `"listen_address"` of the file. Unknown and duplicate flags and members are refused. An unknown variable is ignored
/// with a warning, because other programs name variables after us: Kubernetes does for every service called "postern".
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
    var httpTLS = "on"
    var unixSocketMode = "0600"
    var proxyProtocolFrom = ""
    var keepaliveSeconds: Int64 = 300
    var projectID = "postern"
    var issuer = ""
    var actionURL = ""
    var signingAlgorithm = "RS256"
    var signingKeyRotationDays: Int64 = 90
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
    var journal = ""
    var journalSchema = "postern"
    var journalPasswordFile = ""
    var whenBehind = "refuse"
    var backupDirectory = ""
    var backupEverySeconds: Int64 = 86_400
    var backupKeep: Int64 = 7
    var logLevel = "info"
    var accessLog = "off"
    var accessLogOneIn: Int64 = 1
    var slowCallMillis: Int64 = 1_000
    /// A flag without a setting in the file, because it holds for one start only.
    var acceptsClock = false

    /// The issuer that tokens carry: the setting, or the HTTP port as this machine reaches it, where the keys are
    /// served. If the port is not known in advance, the issuer is a name that leads nowhere.
    var effectiveIssuer: String {
        if !issuer.isEmpty { return issuer }
        guard let address = SocketAddress(httpAddress), address.port != 0 else {
            return "https://postern.local/\(projectID)"
        }
        let onThisMachine = ["0.0.0.0": "127.0.0.1", "::": "::1"][address.host] ?? address.host
        return "http://\(SocketAddress(host: onThisMachine, port: address.port) ?? address)"
    }
    /// The page to which links in mails lead: the setting, or a page below the issuer.
    var effectiveActionURL: String { actionURL.isEmpty ? "\(effectiveIssuer)/action" : actionURL }
    /// Whether the RPC port speaks TLS.
    var hasTLS: Bool { !tlsCertificateFile.isEmpty }
    var effectiveMasterKeyFile: String { masterKeyFile.isEmpty ? "\(dataDirectory)/master-key" : masterKeyFile }
}

struct ConfigurationError: Error, CustomStringConvertible {
    var description: String
}
