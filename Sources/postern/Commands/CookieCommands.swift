import Base
import JSON
import Messages
import PosternClient

/// postern token create-cookie and verify-cookie: sessions of browsers.
enum CookieCommands {
    static let all = [create, verify]

    static let create = Command(
        path: ["token", "create-cookie"], methods: ["Tokens/CreateSessionCookie"],
        summary: "Makes a session cookie of an ID token.",
        example: "-t acme token create-cookie - --valid-for 5d < token", operands: [.required("id-token|-")],
        flags: [Flag("valid-for", "DURATION", "5m to 14d (default: the server's)")]
    ) { session in
        let request = TokensCreateSessionCookieRequest(
            tenantID: try session.tenantID(), idToken: try session.token(operand: 0),
            validSeconds: try session.arguments.positiveSeconds("valid-for", unless: "without it: the server's default")
                ?? 0)
        let client = TokensClient(channel: try session.channel())
        session.output.print(try await client.createSessionCookie(request, options: session.callOptions()))
    }

    static let verify = Command(
        path: ["token", "verify-cookie"], methods: ["Tokens/VerifySessionCookie"],
        summary: "Asks the server whether a session cookie is valid.",
        example: "-t acme token verify-cookie - < cookie", operands: [.required("session-cookie|-")],
        flags: [Flag("any-tenant", "accept a cookie of any tenant")], isReadOnly: true
    ) { session in
        let request = TokensVerifySessionCookieRequest(
            tenantID: try session.tenantID(), sessionCookie: try session.token(operand: 0),
            anyTenant: session.arguments.isSet("any-tenant"))
        let client = TokensClient(channel: try session.channel())
        session.output.print(try await client.verifySessionCookie(request, options: session.callOptions()))
    }
}

extension TokensCreateSessionCookieResponse: Record {
    static let columns = ["session_cookie", "expires_at_micros"]

    var id: String { sessionCookie.string }
}

extension TokensVerifySessionCookieResponse: Record {
    static let columns = ["uid", "tenant_id", "session_id", "expires_at_micros"]

    var id: String { uid.string }
}
