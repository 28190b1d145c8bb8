import Base
import JSON
import Messages
import PosternClient

/// postern apikey …
enum APIKeyCommands {
    static let all = [create, list, update, revoke]

    static let roles: [(String, Role)] = [
        ("verifier", .verifier), ("app", .app), ("tenant-admin", .tenantAdmin), ("project-admin", .projectAdmin),
    ]

    static let create = Command(
        path: ["apikey", "create"],
        summary: "Makes an API key and prints it, with -q the key alone: it cannot be read again.",
        example: "apikey create --role app --scope-tenant acme --display-name shop --key-out shop.key",
        flags: [
            Flag("role", "ROLE", "verifier, app, tenant-admin or project-admin"),
            Flag("scope-tenant", "ID", "works for this tenant only; \"\" is the default pool"),
            Flag("all-tenants", "works for all tenants"),
            Flag("display-name", "TEXT", "what people call it"),
            Flag("trusted-end-user-ip", "its word on end users' addresses counts"),
            Flag("export-password-hashes", "may export password hashes; for tenant-admin or project-admin"),
            Flag("key-out", "FILE", "write the key to this new file, readable by you only, instead of printing it"),
        ] + CallerQuotaFlags.all, isValidatable: true
    ) { session in
        let arguments = session.arguments
        guard let role = try arguments.choice("role", of: roles) else {
            throw CommandError.usage("--role is missing", hint: "one of " + roles.map(\.0).joined(separator: ", "))
        }
        let tenant = arguments.text("scope-tenant")
        guard role == .projectAdmin || (tenant != nil) != arguments.isSet("all-tenants") else {
            throw CommandError.usage("say which tenants it works for: --scope-tenant ID or --all-tenants")
        }
        let scope = Scope(tenants: tenant.map { .tenantID($0) } ?? .all(true))
        let request = ProjectCreateApiKeyRequest(
            role: role, scope: scope, displayName: arguments.text("display-name") ?? .empty,
            trustedEndUserIP: arguments.isSet("trusted-end-user-ip"), validateOnly: session.isValidatingOnly,
            quotas: try CallerQuotaFlags.read(arguments),
            exportPasswordHashes: arguments.isSet("export-password-hashes"))
        let client = ProjectClient(channel: try session.channel())
        let options = try session.callOptions()
        let file = try session.newKeyFile()
        let response: ProjectCreateApiKeyResponse
        if let file {
            response = try await file.kept { try await client.createApiKey(request, options: options) }
        } else {
            response = try await client.createApiKey(request, options: options)
        }
        var key: [UInt8] = response.secretKey.withBytes { Array($0) }
        if let file {
            let id = response.apiKey?.apiKeyID ?? .empty
            try file.finish(with: key + [0x0A], orElse: "postern apikey revoke \(id)")
            session.say("the key is in \(file.path)")
            key = []
        }
        session.output.print(NewAPIKey(apiKey: response.apiKey ?? ApiKey(), secretKey: Text(unchecked: key)))
    }

    static let list = Command(
        path: ["apikey", "list"], summary: "Lists the API keys, revoked ones too.", example: "apikey list",
        flags: [limitFlag], isReadOnly: true
    ) { session in
        let client = ProjectClient(channel: try session.channel())
        try await printPages(session) { token, size in
            let request = ProjectListApiKeysRequest(pageSize: size, pageToken: token)
            let page = try await client.listApiKeys(request, options: session.callOptions())
            return (page.apiKeys, page.nextPageToken)
        }
    }

    static let update: Command = Command(
        path: ["apikey", "update"], summary: "Changes an API key; it binds the next request, everywhere.",
        example: "apikey update <api-key-id> --quota-mutations-per-second 2000",
        operands: [.required("api-key-id")],
        flags: [
            Flag("display-name", "TEXT", "what people call it")
        ] + CallerQuotaFlags.all, isValidatable: true
    ) { session in
        var request = ProjectUpdateApiKeyRequest(
            apiKeyID: Text(session.arguments.operands[0]), validateOnly: session.isValidatingOnly)
        var paths: [Text] = []
        if let name = session.arguments.text("display-name") {
            request.displayName = name
            paths.append("display_name")
        }
        if let quotas = try CallerQuotaFlags.read(session.arguments) {
            request.quotas = quotas
            paths.append("quotas")
        }
        guard !paths.isEmpty else { throw CommandError.usage("nothing to change", hint: "postern \(update.example)") }
        request.updateMask = ProtobufFieldMask(paths: paths)
        let client = ProjectClient(channel: try session.channel())
        session.output.print(try await client.updateApiKey(request, options: session.callOptions()).apiKey ?? ApiKey())
    }

    static let revoke = Command(
        path: ["apikey", "revoke"], summary: "Refuses an API key from the next request on, everywhere.",
        example: "apikey revoke <api-key-id>", operands: [.required("api-key-id")], isValidatable: true
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
