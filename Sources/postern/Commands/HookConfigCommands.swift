import Base
import Messages
import PosternClient

/// postern hook-config …
enum HookConfigCommands {
    static let all = [get, update]

    static let get = Command(
        path: ["hook-config", "get"], methods: ["HookConfigs/Get"],
        summary: "Shows a tenant's blocking hooks; never their secrets.",
        example: "-t acme hook-config get", isReadOnly: true
    ) { session in
        let request = HookConfigsGetRequest(tenantID: try session.tenantID())
        let config = try await client(session).get(request, options: session.callOptions()).config
        session.output.print(config ?? HookConfig())
    }

    static let update: Command = Command(
        path: ["hook-config", "update"], methods: ["HookConfigs/Update"], summary: "Sets or removes a blocking hook.",
        example: "-t acme hook-config update before-sign-in --url https://acme.example/hook --secret-file secret",
        operands: [.required("before-create|before-sign-in")],
        flags: [
            Flag("url", "URL", "gets each sign-in as a signed POST and answers whether it goes on; none: no hook"),
            Flag("secret-file", "FILE", "32 to 256 bytes that sign the requests"),
            Flag("deadline", "DURATION", "how long an answer may take: 100ms to 5s"),
            Flag("allow-on-failure", "true|false", "whether sign-ins go on without an answer, or after a 4xx or 5xx"),
            Flag("allow-private-addresses", "true|false", "hooks in the own network (project-admin)"),
            ifRevisionFlag,
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        let points = ["before-create": "before_create", "before-sign-in": "before_sign_in"]
        guard let point = points[arguments.operands[0]] else {
            throw CommandError.usage("there are the hooks before-create and before-sign-in")
        }
        guard let url = arguments.text("url") else {
            throw CommandError.usage("--url is missing", hint: "postern \(update.example)")
        }
        let secret = try session.secret(inFileOf: "secret-file")
        var hook = Hook(webhook: WebhookConfig(url: url, signingSecret: secret ?? .empty))
        if let deadline = try arguments.duration("deadline") {
            // 0 would be the server's default.
            guard deadline > .zero else { throw CommandError.usage("--deadline is 100ms to 5s") }
            hook.timeoutMillis = Int32(clamping: deadline.microseconds / 1_000)
        }
        hook.allowOnFailure = try arguments.bool("allow-on-failure") ?? false
        var config = HookConfig()
        var paths = [Text(point)]
        if url != "none", point == "before_create" { config.beforeCreate = hook }
        if url != "none", point == "before_sign_in" { config.beforeSignIn = hook }
        if let isAllowed = try arguments.bool("allow-private-addresses") {
            config.allowPrivateAddresses = isAllowed
            paths.append("allow_private_addresses")
        }
        let request = HookConfigsUpdateRequest(
            tenantID: try session.tenantID(), config: config, updateMask: ProtobufFieldMask(paths: paths),
            validateOnly: session.isValidatingOnly, expectedRevision: try arguments.expectedRevision() ?? 0)
        let changed = try await client(session).update(request, options: session.callOptions()).config
        session.output.print(changed ?? HookConfig())
    }

    private static func client(_ session: Session) throws -> HookConfigsClient {
        HookConfigsClient(channel: try session.channel())
    }
}

extension HookConfig: Record {
    static let columns = ["before_create.webhook.url", "before_sign_in.webhook.url"]

    var id: String { "" }
}
