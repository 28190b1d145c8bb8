import Base
import JSON
import Messages
import PosternClient

/// The text of mails, and a test of their delivery: postern email-config …
enum EmailTemplateCommands {
    static let all = [test, preview, setTemplate]

    private static let kinds: [(name: String, type: OobRequestType)] = [
        ("verify-email", .verifyEmail), ("password-reset", .passwordReset), ("sign-in", .emailSignin),
        ("verify-and-change-email", .verifyAndChangeEmail), ("recover-email", .recoverEmail),
        ("revert-second-factor-addition", .revertSecondFactorAddition),
    ]

    static let test = Command(
        path: ["email-config", "test"], methods: ["EmailConfigs/Test"],
        summary: "Sends one mail by the tenant's settings, and says what the mail server answered.",
        example: "-t acme email-config test ops@acme.example", operands: [.required("email")]
    ) { session in
        let request = EmailConfigsTestRequest(
            tenantID: try session.tenantID(), to: Text(session.arguments.operands[0]))
        let response = try await client(session).test(request, options: session.callOptions())
        session.output.print(response)
        guard response.ok else { throw CommandError("mail does not go out as it is") }
    }

    static let preview = Command(
        path: ["email-config", "preview"], methods: ["EmailConfigs/PreviewTemplate"],
        summary: "Shows what a mail says to a made-up user; sends nothing.",
        example: "-t acme email-config preview password-reset --locale de", operands: [.required("kind")],
        flags: [
            Flag("locale", "TAG", "the language, for example de"), Flag("html", "its HTML, not its text"),
            Flag("without-names", "as if user and tenant had no name: %DISPLAY_NAME% and %APP_NAME% are empty"),
        ] + templateFlags,
        isReadOnly: true
    ) { session in
        var request = EmailConfigsPreviewTemplateRequest(
            tenantID: try session.tenantID(), requestType: try kind(session),
            locale: session.arguments.text("locale") ?? .empty)
        request.template = try template(session)
        request.withoutNames = session.arguments.isSet("without-names")
        let response = try await client(session).previewTemplate(request, options: session.callOptions())
        guard session.output.isForPeople else { return session.output.print(response) }
        let body = session.arguments.isSet("html") ? response.html : response.text
        session.console.print(Output.printable("Subject: \(response.subject)"))
        for line in ("\n" + body.string).split(separator: "\n", omittingEmptySubsequences: false) {
            session.console.print(Output.printable(String(line)))
        }
    }

    static let setTemplate: Command = Command(
        path: ["email-config", "set-template"], methods: ["EmailConfigs/Update"],
        summary: "Sets what mail of one kind says in one language, or removes it.",
        example: "-t acme email-config set-template password-reset --subject 'Your password' --text-file reset.txt "
            + "--html-file reset.html",
        operands: [.required("kind")],
        flags: [Flag("locale", "TAG", "the language; without it: all that have no template")] + templateFlags
            + [Flag("remove", "remove the template: the server's own text is sent"), ifRevisionFlag],
        isValidatable: true, prints: .noRecords
    ) { session in
        let (tenantID, kind) = (try session.tenantID(), try kind(session))
        let locale = session.arguments.text("locale") ?? .empty
        let wanted = try template(session)
        guard (wanted == nil) == session.arguments.isSet("remove") else {
            throw CommandError.usage("give a template or --remove", hint: "postern \(setTemplate.example)")
        }
        let client = try client(session)
        let old = try await client.get(EmailConfigsGetRequest(tenantID: tenantID), options: session.callOptions())
        // An update replaces all templates: it must not undo what another admin has set meanwhile.
        let revision = ExpectedRevision.field(of: old.config?.revision ?? 0)
        var templates = (old.config?.templates ?? []).filter { $0.requestType != kind || $0.locale != locale }
        if let wanted { templates.append(wanted) }
        let request = EmailConfigsUpdateRequest(
            tenantID: tenantID, config: EmailConfig(templates: templates),
            updateMask: ProtobufFieldMask(paths: ["templates"]), validateOnly: session.isValidatingOnly,
            expectedRevision: try session.arguments.expectedRevision() ?? revision)
        _ = try await client.update(request, options: session.callOptions())
        session.say("template \(wanted == nil ? "removed" : "set")")
    }

    private static let templateFlags = [
        Flag("subject", "TEXT", "of a template, which needs all three"),
        Flag("text-file", "FILE", "its text, with %LINK%"), Flag("html-file", "FILE", "its HTML, with %LINK%"),
    ]

    /// Nil when no flag of a template is given.
    private static func template(_ session: Session) throws -> EmailTemplate? {
        let arguments = session.arguments
        guard ["subject", "text-file", "html-file"].contains(where: { arguments.value($0) != nil }) else { return nil }
        guard let subject = arguments.text("subject"), let text = arguments.value("text-file"),
            let html = arguments.value("html-file")
        else { throw CommandError.usage("a template has --subject, --text-file and --html-file") }
        return EmailTemplate(
            requestType: try kind(session), locale: arguments.text("locale") ?? .empty, subject: subject,
            text: try contents(text, session), html: try contents(html, session))
    }

    private static func contents(_ path: String, _ session: Session) throws -> Text {
        guard let text = Text(validating: try session.contents(of: path)) else {
            throw CommandError("\(path): is no text in UTF-8")
        }
        return text
    }

    private static func kind(_ session: Session) throws(CommandError) -> OobRequestType {
        let name = session.arguments.operands[0]
        guard let kind = kinds.first(where: { $0.name == name }) else {
            throw .usage("a kind of mail is \(kinds.map(\.name).joined(separator: ", ")), not \"\(name)\"")
        }
        return kind.type
    }

    private static func client(_ session: Session) throws -> EmailConfigsClient {
        EmailConfigsClient(channel: try session.channel())
    }
}

extension EmailConfigsTestResponse: Record {
    static let columns = ["ok", "delivery", "message"]

    var id: String { "" }
}

extension EmailConfigsPreviewTemplateResponse: Record {
    static let columns = ["subject", "text", "html", "from_template"]

    var id: String { "" }
}
