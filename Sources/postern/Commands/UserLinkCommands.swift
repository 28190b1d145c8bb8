import Base
import JSON
import Messages
import PosternClient

/// postern user link|unlink|explain-link|oob-link
enum UserLinkCommands {
    static let all = [link, unlink, explainLink, oobLink]

    static let link = Command(
        path: ["user", "link"], methods: ["Users/Link"], summary: "Links an identity of a provider to a user.",
        example: "-t acme user link u1 oidc.corp --raw-id 4711",
        operands: [.required("uid|email"), .required("provider-id")],
        flags: [
            Flag("raw-id", "ID", "the user's identifier at the provider"),
            Flag("email", "EMAIL", "what the provider calls the user's email"),
            Flag("issuer", "URL", "whose identifier it is (default: the provider's issuer as it is configured now)"),
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        let provider = ProviderInfo(
            providerID: Text(arguments.operands[1]), rawID: arguments.text("raw-id") ?? .empty,
            email: arguments.text("email") ?? .empty, issuer: arguments.text("issuer") ?? .empty)
        let request = UsersLinkRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: arguments.operands[0]),
            provider: provider,
            validateOnly: session.isValidatingOnly)
        session.output.print(try await client(session).link(request, options: session.callOptions()).user ?? User())
    }

    static let unlink = Command(
        path: ["user", "unlink"], methods: ["Users/Unlink"],
        summary: "Removes a way to sign in from a user, the last one too.",
        example: "-t acme user unlink u1 github.com", operands: [.required("uid|email"), .required("provider-id")],
        isValidatable: true
    ) { session in
        let request = UsersUnlinkRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: session.arguments.operands[0]),
            providerID: Text(session.arguments.operands[1]), validateOnly: session.isValidatingOnly)
        session.output.print(try await client(session).unlink(request, options: session.callOptions()).user ?? User())
    }

    static let explainLink = Command(
        path: ["user", "explain-link"], methods: ["Users/ExplainLink"],
        summary: "Says what signing in, or linking to a user, with an identity would do, and why.",
        example: "-t acme user explain-link google.com --claims '{\"sub\":\"1\",\"email\":\"ann@gmail.com\"}'",
        operands: [.required("provider-id")],
        flags: [
            Flag("claims", "JSON", "what the provider would say: sub, email, email_verified, …"),
            Flag("uid", "UID|EMAIL", "linking to this user instead of signing in"),
        ], isReadOnly: true
    ) { session in
        let arguments = session.arguments
        var uid = Text.empty
        if let name = arguments.value("uid") { uid = try await session.uid(named: name) }
        let request = UsersExplainLinkRequest(
            tenantID: try session.tenantID(), providerID: Text(arguments.operands[0]),
            claimsJSON: arguments.text("claims")?.bytes ?? [], uid: uid)
        session.output.print(try await client(session).explainLink(request, options: session.callOptions()))
    }

    private static let kinds: [(name: String, type: OobRequestType)] = [
        ("verify-email", .verifyEmail), ("password-reset", .passwordReset), ("sign-in", .emailSignin),
        ("change-email", .verifyAndChangeEmail),
    ]

    static let oobLink: Command = Command(
        path: ["user", "oob-link"], methods: ["Users/GenerateOobLink"],
        summary: "Makes a link as a mail would carry it, and sends nothing.",
        example: "-t acme user oob-link password-reset ann@example.com",
        operands: [.required("kind"), .required("email")],
        flags: [
            Flag("new-email", "EMAIL", "with change-email"), Flag("continue-url", "URL", "where it leads afterwards"),
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        guard let kind = kinds.first(where: { $0.name == arguments.operands[0] }) else {
            let names = kinds.map(\.name).joined(separator: ", ")
            throw CommandError.usage("a kind is one of \(names)", hint: "postern \(oobLink.example)")
        }
        let request = UsersGenerateOobLinkRequest(
            tenantID: try session.tenantID(), requestType: kind.type, email: Text(arguments.operands[1]),
            newEmail: arguments.text("new-email") ?? .empty, continueURL: arguments.text("continue-url") ?? .empty,
            validateOnly: session.isValidatingOnly)
        session.output.print(try await client(session).generateOobLink(request, options: session.callOptions()))
    }

    private static func client(_ session: Session) throws -> UsersClient {
        UsersClient(channel: try session.channel())
    }
}

extension UsersExplainLinkResponse: Record {
    static let columns = ["outcome", "uid", "email_trusted", "reason", "explanation"]

    var id: String { uid.string }
}

extension UsersGenerateOobLinkResponse: Record {
    static let columns = ["oob_link", "expires_at_micros"]

    var id: String { oobLink.withBytes { String(decoding: $0, as: UTF8.self) } }
}
