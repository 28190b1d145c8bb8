import Base
import JSON
import Messages
import PosternClient

/// postern service-account …
enum ServiceAccountCommands {
    static let all = [create, get, list, update, disable, enable, delete] + ServiceAccountKeyCommands.all

    private static let roles = APIKeyCommands.roles + [("none", Role.unspecified)]

    private static let grantFlags =
        [
            Flag("role", "ROLE", "what it may call: verifier, app, tenant-admin, project-admin or none"),
            Flag("scope-tenant", "ID", "for this tenant only; \"\" is the default pool"),
            Flag("all-tenants", "for all tenants"),
            Flag("display-name", "TEXT", "the name that people see"),
        ] + CallerQuotaFlags.all

    static let create = Command(
        path: ["service-account", "create"], methods: ["Project/CreateServiceAccount"],
        summary: "Makes an identity for a program; its keys come next.",
        example: "service-account create shop-backend --role none --custom-tokens --scope-tenant acme",
        operands: [.optional("service-account-id")],
        flags: grantFlags + [
            Flag("custom-tokens", "its keys may sign in any user of these tenants"),
            Flag("trusted-end-user-ip", "the addresses of end users that it names are believed"),
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        let role = try arguments.role(of: roles)
        guard let scope = try scope(arguments) ?? (role == .projectAdmin ? Scope(tenants: .all(true)) : nil) else {
            throw CommandError.usage("say which tenants it is for: --scope-tenant ID or --all-tenants")
        }
        let request = ProjectCreateServiceAccountRequest(
            serviceAccountID: Text(arguments.operand(0) ?? ""), displayName: arguments.text("display-name") ?? .empty,
            role: role, scope: scope, customTokens: arguments.isSet("custom-tokens"),
            trustedEndUserIP: arguments.isSet("trusted-end-user-ip"), validateOnly: session.isValidatingOnly,
            quotas: try CallerQuotaFlags(arguments).given)
        let response = try await client(session).createServiceAccount(request, options: session.callOptions())
        session.output.print(response.serviceAccount ?? ServiceAccount())
    }

    static let get = Command(
        path: ["service-account", "get"], methods: ["Project/GetServiceAccount"], summary: "Shows a service account.",
        example: "service-account get shop-backend", operands: [.required("service-account-id")], isReadOnly: true
    ) { session in
        let request = ProjectGetServiceAccountRequest(serviceAccountID: id(session))
        let response = try await client(session).getServiceAccount(request, options: session.callOptions())
        session.output.print(response.serviceAccount ?? ServiceAccount())
    }

    static let list = Command(
        path: ["service-account", "list"], methods: ["Project/ListServiceAccounts"],
        summary: "Lists the service accounts.", example: "service-account list",
        flags: [limitFlag], isReadOnly: true
    ) { session in
        let client = try client(session)
        try await printPages(session) { token, size in
            let request = ProjectListServiceAccountsRequest(pageSize: size, pageToken: token)
            let page = try await client.listServiceAccounts(request, options: session.callOptions())
            return (page.serviceAccounts, page.nextPageToken)
        }
    }

    static let update: Command = Command(
        path: ["service-account", "update"], methods: ["Project/UpdateServiceAccount"],
        summary: "Changes what a service account may; it binds the next request, everywhere.",
        example: "service-account update shop-backend --role app",
        operands: [.required("service-account-id")],
        flags: grantFlags + [
            Flag("custom-tokens", "true|false", "whether its keys may sign in any user of these tenants"),
            Flag("trusted-end-user-ip", "true|false", "whether the addresses of end users that it names are believed"),
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        var request = ProjectUpdateServiceAccountRequest()
        var paths: [Text] = []
        if let name = arguments.text("display-name") {
            request.displayName = name
            paths.append("display_name")
        }
        if let role = try arguments.choice("role", of: roles) {
            request.role = role
            paths.append("role")
        }
        if let scope = try scope(arguments) {
            request.scope = scope
            paths.append("scope")
        }
        if let customTokens = try arguments.bool("custom-tokens") {
            request.customTokens = customTokens
            paths.append("custom_tokens")
        }
        if let isTrusted = try arguments.bool("trusted-end-user-ip") {
            request.trustedEndUserIP = isTrusted
            paths.append("trusted_end_user_ip")
        }
        let quotas = try CallerQuotaFlags(arguments)
        request.quotas = quotas.given
        paths += quotas.paths
        guard !paths.isEmpty else { throw CommandError.usage("nothing to change", hint: "postern \(update.example)") }
        try await change(request, paths, session)
    }

    static let disable = Command(
        path: ["service-account", "disable"], methods: ["Project/UpdateServiceAccount"],
        summary: "Refuses all that its keys signed or sign, until it is enabled.",
        example: "service-account disable shop-backend", operands: [.required("service-account-id")],
        isValidatable: true
    ) { session in
        try session.confirm("Disable service account \(id(session))? Whoever uses its keys is refused at once.")
        try await change(ProjectUpdateServiceAccountRequest(disabled: true), ["disabled"], session)
    }

    static let enable = Command(
        path: ["service-account", "enable"], methods: ["Project/UpdateServiceAccount"],
        summary: "Lets its keys be used again.",
        example: "service-account enable shop-backend", operands: [.required("service-account-id")],
        isValidatable: true
    ) { session in
        try await change(ProjectUpdateServiceAccountRequest(disabled: false), ["disabled"], session)
    }

    static let delete = Command(
        path: ["service-account", "delete"], methods: ["Project/DeleteServiceAccount"],
        summary: "Deletes a service account with its keys, for ever.",
        example: "service-account delete shop-backend --confirm=shop-backend",
        operands: [.required("service-account-id")], isValidatable: true, prints: .noRecords, asksForName: true
    ) { session in
        let id = id(session)
        try session.confirm(
            "Service account \(id) and its keys will be gone; its id can never be used again.", byName: id.string)
        let request = ProjectDeleteServiceAccountRequest(
            serviceAccountID: id, validateOnly: session.isValidatingOnly)
        _ = try await client(session).deleteServiceAccount(request, options: session.callOptions())
        session.say("service account \(id) deleted")
    }

    private static func change(
        _ change: ProjectUpdateServiceAccountRequest, _ paths: [Text], _ session: Session
    ) async throws {
        var request = change
        request.serviceAccountID = id(session)
        request.updateMask = ProtobufFieldMask(paths: paths)
        request.validateOnly = session.isValidatingOnly
        let response = try await client(session).updateServiceAccount(request, options: session.callOptions())
        session.output.print(response.serviceAccount ?? ServiceAccount())
    }

    /// Nil when neither flag is given.
    private static func scope(_ arguments: Arguments) throws(CommandError) -> Scope? {
        let tenant = arguments.text("scope-tenant")
        guard arguments.isSet("all-tenants") else { return tenant.map { Scope(tenants: .tenantID($0)) } }
        guard tenant == nil else { throw .usage("--scope-tenant and --all-tenants exclude each other") }
        return Scope(tenants: .all(true))
    }

    static func id(_ session: Session) -> Text { Text(session.arguments.operands[0]) }

    static func client(_ session: Session) throws -> ProjectClient { ProjectClient(channel: try session.channel()) }
}

extension ServiceAccount: Record {
    static let columns = [
        "service_account_id", "role", "scope", "custom_tokens", "disabled", "display_name", "created_at_micros",
    ]

    var id: String { serviceAccountID.string }

    var json: JSONValue {
        var shown = self
        shown.quotas = quotas ?? CallerQuotas()
        return shown.fieldsJSON
    }
}
