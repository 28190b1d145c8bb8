import Base
import JSON
import Messages
import PosternClient

/// Tells which log has the events of API keys.
private let keyEventsNote = """
    Its events are in the project's log, which project-admins read:
      postern -t "" audit list --kind api-key-created,api-key-updated,api-key-rotated,api-key-revoked
    What a tenant-admin does with a key of its own tenant is in that tenant's log.
    """

/// postern apikey …
enum APIKeyCommands {
    static let all = [create, list, update, rotate, revoke, whoami]

    static let roles: [(String, Role)] = [
        ("verifier", .verifier), ("app", .app), ("tenant-admin", .tenantAdmin), ("project-admin", .projectAdmin),
    ]

    static let create = Command(
        path: ["apikey", "create"], methods: ["Project/CreateApiKey"],
        summary: "Makes an API key and prints it, with -q the key alone: it cannot be read again.",
        example: "apikey create --role app --scope-tenant acme --display-name shop --key-out shop.key",
        flags: [
            Flag("role", "ROLE", "verifier, app, tenant-admin or project-admin"),
            Flag(
                "scope-tenant", "ID",
                "works for this tenant only; \"\" is the default pool (default: the tenant of your own key)"),
            Flag("all-tenants", "works for all tenants"),
            Flag("display-name", "TEXT", "the name that people see"),
            Flag("trusted-end-user-ip", "the addresses of end users that it names are believed"),
            Flag("export-password-hashes", "may export password hashes; for tenant-admin or project-admin"),
            Flag("key-out", "FILE", "write the key to this new file, readable by you only, instead of printing it"),
        ] + useFlags + CallerQuotaFlags.all, isValidatable: true,
        ifAnswerIsLost: "if postern apikey list shows a new key, its secret is lost: revoke the key"
    ) { session in
        let arguments = session.arguments
        let role = try arguments.role(of: roles)
        var request = ProjectCreateApiKeyRequest(
            role: role, displayName: arguments.text("display-name") ?? .empty,
            trustedEndUserIP: arguments.isSet("trusted-end-user-ip"), validateOnly: session.isValidatingOnly,
            quotas: try CallerQuotaFlags(arguments).given,
            exportPasswordHashes: arguments.isSet("export-password-hashes"),
            expiresAtMicros: try expiry(arguments) ?? 0,
            allowedAddresses: try arguments.restriction("allow-address") ?? [])
        request.scope = try await session.scope(for: role)
        let client = ProjectClient(channel: try session.channel())
        let (options, wanted) = (try session.callOptions(), request)
        try await handOut(
            session, ifLost: { "the key was made and is lost; undo it: postern apikey revoke \($0.apiKeyID)" },
            {
                let response = try await client.createApiKey(wanted, options: options)
                return (response.apiKey ?? ApiKey(), response.secretKey)
            })
    }

    /// Prints a secret, or puts it into the file that was asked for. `advice` is for a secret that was made, and could
    /// be neither printed nor kept. Fields that would leave the secret out are refused before it is made.
    private static func handOut(
        _ session: Session, ifLost advice: (ApiKey) -> String,
        _ make: () async throws -> (apiKey: ApiKey, secretKey: Secret)
    ) async throws {
        let isKept = session.arguments.value("key-out").map { $0 != "-" } ?? false
        try session.output.checkFields(
            NewAPIKey(apiKey: ApiKey(), secretKey: .empty), needing: isKept ? nil : "secret_key")
        guard let file = try session.newKeyFile() else {
            let (apiKey, secret) = try await make()
            let key: [UInt8] = secret.withBytes { Array($0) }
            session.output.print(NewAPIKey(apiKey: apiKey, secretKey: Text(unchecked: key)))
            return try session.checkThatSecretWasPrinted(ifLost: advice(apiKey))
        }
        let (apiKey, secret) = try await file.kept { try await make() }
        let key: [UInt8] = secret.withBytes { Array($0) }
        try file.finish(with: key + [0x0A], ifLost: advice(apiKey))
        session.say("the key is in \(file.path)")
        session.output.print(NewAPIKey(apiKey: apiKey, secretKey: .empty))
    }

    private static let useFlags = [
        Flag("expires-in", "DURATION", "how long it is valid: 90d; never: without an end"),
        Flag("allow-address", "RANGE,…", "where it may be used from: 192.0.2.0/24,2001:db8::1; \"\": anywhere"),
    ]

    /// Nil: the flag is not given.
    private static func expiry(_ arguments: Arguments) throws(CommandError) -> Int64? {
        if arguments.value("expires-in") == "never" { return 0 }
        guard let duration = try arguments.duration("expires-in") else { return nil }
        guard duration >= .seconds(1) else {
            throw .usage("--expires-in is a second or more", hint: "never: without an end")
        }
        return (Clock.system.now() + duration).microseconds
    }

    static let rotate = Command(
        path: ["apikey", "rotate"], methods: ["Project/RotateApiKey"],
        summary: "Gives an API key a new secret and prints it; the one before stays valid for a while, no older one.",
        example: "apikey rotate <api-key-id> --overlap 24h --key-out shop-new.key",
        operands: [.required("api-key-id")],
        flags: [
            Flag("overlap", "DURATION", "how long the old secret stays valid (default 24h; 0: not at all)"),
            Flag("key-out", "FILE", "write the key to this new file, readable by you only, instead of printing it"),
        ], isValidatable: true, note: keyEventsNote,
        ifAnswerIsLost: "do not rotate again, which could end the secret in use. If postern apikey list -o json shows "
            + "a new previous_secret_until_micros, the new secret is lost: make another key and move to it before then"
    ) { session in
        let overlap = try session.arguments.wholeSeconds("overlap") ?? 86_400
        let request = ProjectRotateApiKeyRequest(
            apiKeyID: Text(session.arguments.operands[0]), overlapSeconds: overlap,
            validateOnly: session.isValidatingOnly)
        let client = ProjectClient(channel: try session.channel())
        let options = try session.callOptions()
        try await handOut(
            session, ifLost: adviceOnLostRotation,
            {
                let response = try await client.rotateApiKey(request, options: options)
                return (response.apiKey ?? ApiKey(), response.secretKey)
            })
        if overlap > 0 {
            session.say("to end the old secret sooner: postern apikey update \(request.apiKeyID) --end-old-secret")
        }
    }

    /// Revoking the key, or rotating it again, would end the secret that is in use.
    static func adviceOnLostRotation(_ key: ApiKey) -> String {
        guard key.previousSecretUntilMicros > 0 else {
            return "the new secret is lost, and the old one has ended: make another key with postern apikey create"
        }
        let end = Timestamp(microseconds: key.previousSecretUntilMicros).rfc3339
        return "the new secret is lost; the old one stays valid until \(end). Do not rotate again: make another key "
            + "and move to it before then."
    }

    static let whoami = Command(
        path: ["whoami"], methods: ["Project/WhoAmI"],
        summary: "Says who the server takes this credential for, and what it may do.",
        example: "whoami", isReadOnly: true
    ) { session in
        let client = ProjectClient(channel: try session.channel())
        session.output.print(try await client.whoAmI(ProjectWhoAmIRequest(), options: session.callOptions()))
    }

    static let list = Command(
        path: ["apikey", "list"], methods: ["Project/ListApiKeys"],
        summary: "Lists the API keys, revoked ones too.", example: "apikey list",
        flags: [limitFlag], isReadOnly: true, note: keyEventsNote
    ) { session in
        let client = ProjectClient(channel: try session.channel())
        try await printPages(session) { token, size in
            let request = ProjectListApiKeysRequest(pageSize: size, pageToken: token)
            let page = try await client.listApiKeys(request, options: session.callOptions())
            return (page.apiKeys, page.nextPageToken)
        }
    }

    static let update: Command = Command(
        path: ["apikey", "update"], methods: ["Project/UpdateApiKey"],
        summary: "Changes an API key; it binds the next request, everywhere.",
        example: "apikey update <api-key-id> --quota-mutations-per-second 2000",
        operands: [.required("api-key-id")],
        flags: [
            Flag("display-name", "TEXT", "the name that people see"),
            Flag("end-old-secret", "refuse the secret from before the last rotation at once; the present one stays"),
        ] + useFlags + CallerQuotaFlags.all, isValidatable: true, note: keyEventsNote
    ) { session in
        var request = ProjectUpdateApiKeyRequest(
            apiKeyID: Text(session.arguments.operands[0]), validateOnly: session.isValidatingOnly)
        var paths: [Text] = []
        if let name = session.arguments.text("display-name") {
            request.displayName = name
            paths.append("display_name")
        }
        let quotas = try CallerQuotaFlags(session.arguments)
        request.quotas = quotas.given
        paths += quotas.paths
        if let expiresAt = try expiry(session.arguments) {
            request.expiresAtMicros = expiresAt
            paths.append("expires_at_micros")
        }
        if let addresses = try session.arguments.restriction("allow-address") {
            request.allowedAddresses = addresses
            paths.append("allowed_addresses")
        }
        if session.arguments.isSet("end-old-secret") { paths.append("previous_secret_until_micros") }
        guard !paths.isEmpty else { throw CommandError.usage("nothing to change", hint: "postern \(update.example)") }
        request.updateMask = ProtobufFieldMask(paths: paths)
        let client = ProjectClient(channel: try session.channel())
        session.output.print(try await client.updateApiKey(request, options: session.callOptions()).apiKey ?? ApiKey())
    }

    static let revoke = Command(
        path: ["apikey", "revoke"], methods: ["Project/RevokeApiKey"],
        summary: "Refuses an API key, with all its secrets, from the next request on.",
        example: "apikey revoke <api-key-id>", operands: [.required("api-key-id")], isValidatable: true,
        note: keyEventsNote
    ) { session in
        let id = session.arguments.operands[0]
        try session.confirm("Revoke API key \(id)? Whoever uses it is refused at once.")
        let request = ProjectRevokeApiKeyRequest(apiKeyID: Text(id), validateOnly: session.isValidatingOnly)
        let client = ProjectClient(channel: try session.channel())
        session.output.print(try await client.revokeApiKey(request, options: session.callOptions()).apiKey ?? ApiKey())
    }
}

private struct NewAPIKey: Record {
    static let columns = ["api_key.api_key_id", "secret_key"]

    let apiKey: ApiKey
    let secretKey: Text

    /// The key itself unless it went into a file: nobody can ask for it later.
    var id: String { secretKey.isEmpty ? apiKey.apiKeyID.string : secretKey.string }

    var json: JSONValue { ["api_key": apiKey.json, "secret_key": .string(secretKey)] }
}
