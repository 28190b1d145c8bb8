import Base
import Messages
import PosternClient

/// postern sms-config …
enum SMSConfigCommands {
    static let all = [get, update]

    static let get = Command(
        path: ["sms-config", "get"], methods: ["SmsConfigs/Get"],
        summary: "Shows how a tenant's SMS go out; never the webhook's secret.",
        example: "-t acme sms-config get", isReadOnly: true
    ) { session in
        let request = SmsConfigsGetRequest(tenantID: try session.tenantID())
        let config = try await client(session).get(request, options: session.callOptions()).config
        session.output.print(config ?? SmsConfig())
    }

    static let update: Command = Command(
        path: ["sms-config", "update"], methods: ["SmsConfigs/Update"], summary: "Changes what is given.",
        example: "-t acme sms-config update --delivery webhook --webhook-url https://sms.acme.example/send "
            + "--webhook-secret-file secret",
        flags: [
            Flag("delivery", "outbox|webhook", "how SMS go out"),
            Flag("webhook-url", "URL", "gets each SMS as a signed POST"),
            Flag("webhook-secret-file", "FILE", "with --webhook-url: 32 to 256 bytes that sign the requests"),
            Flag("text", "TEXT", "the words of every SMS, with %CODE% and perhaps %APP_NAME%; none: our own"),
            Flag("allow-private-addresses", "true|false", "a webhook in the own network (project-admin)"),
            ifRevisionFlag,
        ], isValidatable: true
    ) { session in
        let (config, paths) = try change(session)
        guard !paths.isEmpty else {
            throw CommandError.usage("nothing to change", hint: "postern \(update.example)")
        }
        let request = SmsConfigsUpdateRequest(
            tenantID: try session.tenantID(), config: config, updateMask: ProtobufFieldMask(paths: paths),
            validateOnly: session.isValidatingOnly, expectedRevision: try session.arguments.expectedRevision() ?? 0)
        let changed = try await client(session).update(request, options: session.callOptions()).config
        session.output.print(changed ?? SmsConfig())
    }

    private static func change(_ session: Session) throws -> (SmsConfig, [Text]) {
        let arguments = session.arguments
        try arguments.check(["webhook-secret-file"], need: "webhook-url")
        var config = SmsConfig()
        var paths: [Text] = []
        if let delivery = try arguments.choice("delivery", of: [("outbox", SmsDelivery.outbox), ("webhook", .webhook)])
        {
            config.delivery = delivery
            paths.append("delivery")
        }
        if let url = arguments.text("webhook-url") {
            let secret = try session.secret(inFileOf: "webhook-secret-file")
            config.webhook = WebhookConfig(url: url, signingSecret: secret ?? .empty)
            paths.append("webhook")
        }
        if let text = arguments.text("text") {
            config.templates = text == "none" ? [] : [SmsTemplate(text: text)]
            paths.append("templates")
        }
        if let isAllowed = try arguments.bool("allow-private-addresses") {
            config.allowPrivateAddresses = isAllowed
            paths.append("allow_private_addresses")
        }
        return (config, paths)
    }

    private static func client(_ session: Session) throws -> SmsConfigsClient {
        SmsConfigsClient(channel: try session.channel())
    }
}

extension SmsConfig: Record {
    static let columns = ["delivery", "webhook.url", "webhook.has_signing_secret"]

    var id: String { "" }
}
