import Base
import JSON
import Messages
import PosternClient

/// postern email-config …
enum EmailConfigCommands {
    static let all = [get, update]

    static let get = Command(
        path: ["email-config", "get"], methods: ["EmailConfigs/Get"],
        summary: "Shows how a tenant's mail goes out; never its secrets.",
        example: "-t acme email-config get", isReadOnly: true
    ) { session in
        let request = EmailConfigsGetRequest(tenantID: try session.tenantID())
        let config = try await client(session).get(request, options: session.callOptions()).config
        session.output.print(config ?? EmailConfig())
    }

    private static let deliveries: [(name: String, value: EmailDelivery)] = [
        ("outbox", .outbox), ("smtp", .smtp), ("webhook", .webhook),
    ]
    private static let securities: [(name: String, value: SmtpSecurity)] = [
        ("starttls", .starttls), ("tls", .tls), ("none", .none),
    ]

    static let update: Command = Command(
        path: ["email-config", "update"], methods: ["EmailConfigs/Update"], summary: "Changes what is given.",
        example: "-t acme email-config update --delivery smtp --smtp-server mail.example.com:587 "
            + "--smtp-username acme --smtp-password-file pw --sender-address no-reply@acme.example",
        flags: [
            Flag("delivery", "outbox|smtp|webhook", "how mail goes out"),
            Flag("smtp-server", "HOST:PORT", "the mail server; give its user name and password again with it"),
            Flag(
                "smtp-security", "starttls|tls|none",
                "with --smtp-server; default starttls; none only to this machine"),
            Flag("smtp-username", "NAME", "with --smtp-server"),
            Flag("smtp-password-file", "FILE", "with --smtp-server: holds the password; - is standard input"),
            Flag("webhook-url", "URL", "gets each mail as a signed POST"),
            Flag("webhook-secret-file", "FILE", "with --webhook-url: 32 to 256 bytes that sign the requests"),
            Flag("sender-name", "TEXT", "as mail shows it"), Flag("sender-address", "EMAIL", "From:"),
            Flag("reply-to", "EMAIL", "Reply-To:"), Flag("action-url", "URL", "the page that links lead to"),
            Flag("allow-private-addresses", "true|false", "servers in the own network (project-admin)"),
            ifRevisionFlag,
        ], isValidatable: true
    ) { session in
        let (config, paths) = try change(session)
        guard !paths.isEmpty else {
            throw CommandError.usage("nothing to change", hint: "postern \(update.example)")
        }
        let request = EmailConfigsUpdateRequest(
            tenantID: try session.tenantID(), config: config, updateMask: ProtobufFieldMask(paths: paths),
            validateOnly: session.isValidatingOnly, expectedRevision: try session.arguments.expectedRevision() ?? 0)
        let changed = try await client(session).update(request, options: session.callOptions()).config
        session.output.print(changed ?? EmailConfig())
    }

    private static func change(_ session: Session) throws -> (EmailConfig, [Text]) {
        let arguments = session.arguments
        try arguments.check(["smtp-security", "smtp-username", "smtp-password-file"], need: "smtp-server")
        try arguments.check(["webhook-secret-file"], need: "webhook-url")
        var config = EmailConfig()
        var paths: [Text] = []
        if let wanted = arguments.value("delivery") {
            guard let delivery = deliveries.first(where: { $0.name == wanted }) else {
                throw CommandError.usage("--delivery is outbox, smtp or webhook")
            }
            config.delivery = delivery.value
            paths.append("delivery")
        }
        if let server = arguments.value("smtp-server") {
            config.smtp = try smtp(server, session)
            paths.append("smtp")
        }
        if let url = arguments.text("webhook-url") {
            let secret = try session.secret(inFileOf: "webhook-secret-file")
            config.webhook = WebhookConfig(url: url, signingSecret: secret ?? .empty)
            paths.append("webhook")
        }
        for (flag, path, field) in [
            ("sender-name", "sender_name", \EmailConfig.senderName),
            ("sender-address", "sender_address", \.senderAddress), ("reply-to", "reply_to", \.replyTo),
            ("action-url", "action_url", \.actionURL),
        ] as [(String, Text, WritableKeyPath<EmailConfig, Text>)] {
            guard let value = arguments.text(flag) else { continue }
            config[keyPath: field] = value
            paths.append(path)
        }
        if let isAllowed = try arguments.bool("allow-private-addresses") {
            config.allowPrivateAddresses = isAllowed
            paths.append("allow_private_addresses")
        }
        return (config, paths)
    }

    private static func smtp(_ server: String, _ session: Session) throws -> SmtpConfig {
        guard let colon = server.lastIndex(of: ":"), let port = Int32(server[server.index(after: colon)...]) else {
            throw CommandError.usage("--smtp-server is HOST:PORT")
        }
        let wanted = session.arguments.value("smtp-security") ?? "starttls"
        guard let security = securities.first(where: { $0.name == wanted }) else {
            throw CommandError.usage("--smtp-security is starttls, tls or none")
        }
        var smtp = SmtpConfig(host: Text(String(server[..<colon])), port: port, security: security.value)
        smtp.username = session.arguments.text("smtp-username") ?? .empty
        smtp.password = try session.secret(inFileOf: "smtp-password-file") ?? .empty
        return smtp
    }

    private static func client(_ session: Session) throws -> EmailConfigsClient {
        EmailConfigsClient(channel: try session.channel())
    }
}

extension EmailConfig: Record {
    static let columns = ["delivery", "smtp.host", "webhook.url", "sender_address", "action_url"]

    var id: String { "" }
}
