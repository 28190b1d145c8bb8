import Base
import JSON
import Outbound
import TLS
import Transport

extension Configuration {
    /// Checks what single settings cannot: combinations, and values that would start a server that nobody wants.
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
        for (isGood, message) in listeningRules { try require(isGood, message) }
        try require(
            !(tlsRequired && allowPlaintext), "tls_required, allow_plaintext: one excludes the other")
        try require(
            journalPasswordFile.isEmpty || !journal.isEmpty, "journal_password_file: is of no use without journal")
        try require(WhenBehind(rawValue: whenBehind) != nil, "when_behind: must be refuse or serve")
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

    /// The same, with all values that follow from other settings or from the machine, as a server has them if it starts
    /// here.
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

    /// The whole configuration, as a file that has the same effect.
    var printed: String {
        let members = Setting.all.map { JSONValue.Member(Text($0.key), $0.json(in: self)) }
        return String(decoding: JSONValue.object(members).prettyPrinted(), as: UTF8.self)
    }
}
