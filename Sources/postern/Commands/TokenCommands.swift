import Base
import JSON
import Messages
import PosternClient

/// postern token …
enum TokenCommands {
    static let all = [verify, refresh, mint, decode]

    static let verify = Command(
        path: ["token", "verify"], methods: ["Tokens/VerifyIdToken"],
        summary: "Asks the server whether an ID token is valid.",
        example: "-t acme token verify - < token",
        operands: [.required("id-token|-")], flags: [Flag("any-tenant", "accept a token of any tenant")],
        isReadOnly: true
    ) { session in
        let request = TokensVerifyIdTokenRequest(
            tenantID: try session.tenantID(), idToken: try session.token(operand: 0),
            anyTenant: session.arguments.isSet("any-tenant"))
        let client = TokensClient(channel: try session.channel())
        session.output.print(try await client.verifyIdToken(request, options: session.callOptions()))
    }

    static let refresh = Command(
        path: ["token", "refresh"], methods: ["Tokens/Refresh"],
        summary: "Exchanges a refresh token for a new ID token and the refresh token's successor.",
        example: "-t acme token refresh - < refresh-token -o json", operands: [.required("refresh-token|-")]
    ) { session in
        var generator = SystemRandomNumberGenerator()
        let request = TokensRefreshRequest(
            tenantID: try session.tenantID(), refreshToken: try session.token(operand: 0),
            attemptID: (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
        let client = TokensClient(channel: try session.channel())
        session.output.print(try await client.refresh(request, options: session.callOptions()))
    }

    static let mint = Command(
        path: ["token", "mint"], methods: ["Users/CreateCustomToken"],
        summary: "Makes a custom token, with which a client can sign in as the user once.",
        example: "-t acme token mint u1 --claims '{\"plan\":\"gold\"}' --lifetime 5m", operands: [.required("uid")],
        flags: [
            Flag("claims", "JSON", "an object that goes into every ID token of the session"),
            Flag("lifetime", "DURATION", "how long it can be used (default and at most 1h)"),
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        let request = UsersCreateCustomTokenRequest(
            tenantID: try session.tenantID(), uid: Text(arguments.operands[0]),
            claimsJSON: arguments.text("claims")?.bytes ?? [],
            lifetimeSeconds: try arguments.positiveSeconds("lifetime", unless: "without it: 1h") ?? 0,
            validateOnly: session.isValidatingOnly)
        let client = UsersClient(channel: try session.channel())
        let response = try await client.createCustomToken(request, options: session.callOptions())
        session.output.print(
            CustomToken(
                token: response.customToken.withBytes { Text(unchecked: Array($0)) },
                expiresAtMicros: response.expiresAtMicros))
    }

    static let decode = Command(
        path: ["token", "decode"], summary: "Shows what an ID token says, without asking anybody whether it is true.",
        example: "token decode - < token", operands: [.required("id-token|-")], isReadOnly: true
    ) { session in
        session.output.print(try DecodedToken(session.token(operand: 0)))
        session.say("not verified: postern token verify does that")
    }
}

private struct CustomToken: Record {
    static let columns = ["custom_token", "expires_at_micros"]

    let token: Text
    let expiresAtMicros: Int64

    var id: String { token.string }

    var json: JSONValue { ["custom_token": .string(token), "expires_at_micros": .integer(expiresAtMicros)] }
}

/// A JWT's header and payload (RFC 7519), unverified.
struct DecodedToken: Record, Equatable {
    static let columns = ["header", "payload"]

    let header: JSONValue
    let payload: JSONValue

    init(_ token: Text) throws(CommandError) {
        let parts = token.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.json(parts[0]), let payload = Self.json(parts[1]) else {
            throw CommandError("this is no JWT: three parts of base64url with dots between, the first two JSON")
        }
        self.header = header
        self.payload = payload
    }

    var id: String { payload["sub"]?.string ?? "" }

    var json: JSONValue { ["header": header, "payload": payload] }

    private static func json(_ part: ArraySlice<UInt8>) -> JSONValue? {
        Base64.url.decode(part).flatMap { try? JSONValue(parsing: $0) }
    }
}
