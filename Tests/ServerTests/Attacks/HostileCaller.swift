import Base
import Identity
import Messages
import TestSupport
import Testing
import Wire

/// Calls a server process with requests that are right but for one field. For the right values it makes a tenant with
/// cheap hashes, a user who is signed in, a provider, a mail and a service account.
final class HostileCaller {
    let schema: ProtobufSchema
    private let port: UInt16
    private let adminKey: Secret
    private var client: RawClient
    private let canary: RawClient
    /// The right values, by the name of their field.
    private(set) var known: [String: WireValue] = [:] { didSet { bases = [:] } }
    /// What `base` makes of each method's request, with these values.
    private var bases: [String: WireTree] = [:]
    private var tenantCount = 0

    init(port: UInt16, adminKey: Secret) throws {
        self.port = port
        self.adminKey = adminKey
        schema = try ProtobufSchema()
        client = try RawClient(port: port)
        canary = try RawClient(port: port)
        canary.apiKey = adminKey
        client.close()
        try prepare()
    }

    /// The outcome of a call.
    struct Answer {
        let code: StatusCode
        let reason: String
    }

    /// Makes everything anew, so that the changes of an earlier call do not affect the next one.
    func prepare() throws {
        try connect()
        tenantCount += 1
        let tenant = Text("hostile-\(tenantCount)")
        let email: Text = "ada@example.com"
        var wanted = Messages.Tenant()
        wanted.enableAnonymousUser = true
        wanted.enableEmailLinkSignin = true
        wanted.synthetic = true
        wanted.allowInternationalEmail = true
        wanted.allowedContinueDomains = ["a.example"]
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: tenant, tenant: wanted,
                updateMask: ProtobufFieldMask(paths: [
                    "synthetic", "enable_anonymous_user", "enable_email_link_signin", "allow_international_email",
                    "allowed_continue_domains",
                ])))
        let signedUp: AccountsSignUpResponse = try client.call(
            "postern.v1.Accounts/SignUp",
            AccountsSignUpRequest(tenantID: tenant, email: email, password: Secret("correct horse")))
        let tokens = try #require(signedUp.tokens)
        let sessions: SessionsListResponse = try client.call(
            "postern.v1.Sessions/List", SessionsListRequest(tenantID: tenant, idToken: tokens.idToken))
        let link: UsersGenerateOobLinkResponse = try client.call(
            "postern.v1.Users/GenerateOobLink",
            UsersGenerateOobLinkRequest(tenantID: tenant, requestType: .passwordReset, email: email))
        let _: AccountsSendOobCodeResponse = try client.call(
            "postern.v1.Accounts/SendOobCode",
            AccountsSendOobCodeRequest(tenantID: tenant, requestType: .passwordReset, email: email))
        let outbox: OutboxListResponse = try client.call("postern.v1.Outbox/List", OutboxListRequest(tenantID: tenant))
        let uid = signedUp.user?.uid ?? .empty
        let custom: UsersCreateCustomTokenResponse = try client.call(
            "postern.v1.Users/CreateCustomToken", UsersCreateCustomTokenRequest(tenantID: tenant, uid: uid))
        let cookie: TokensCreateSessionCookieResponse = try client.call(
            "postern.v1.Tokens/CreateSessionCookie",
            TokensCreateSessionCookieRequest(tenantID: tenant, idToken: tokens.idToken, validSeconds: 3_600))
        let texts: [String: Text] = [
            "tenant_id": tenant, "uid": uid, "email": email, "identifier": email, "password": "correct horse",
            "new_password": "another horse", "new_email": "eve@example.com", "id_token": tokens.idToken,
            "refresh_token": tokens.refreshToken, "session_id": sessions.sessions.first?.sessionID ?? .empty,
            "message_id": outbox.messages.first?.messageID ?? .empty, "provider_id": "oidc.corp",
            "continue_url": "https://a.example/x", "continue_uri": "https://a.example/x",
            "service_account_id": Text("robot-\(tenantCount)"), "display_name": "Ada",
            "photo_url": "https://a.example/p.png", "client_id": "client", "issuer": "https://127.0.0.1:1",
            "phone_number": "+14155550123", "raw_id": "raw", "claims_json": "{\"sub\":\"1\"}",
            "custom_claims_json": "{\"a\":1}", "algorithm": "ES256", "pending_token": "x",
            "session_cookie": cookie.sessionCookie, "host": "mail.example.com", "url": "https://a.example/hook",
            "subject": "s", "text": "%LINK%", "html": "%LINK%",
            "signing_secret": Text(String(repeating: "s", count: 32)), "api_key_id": "none", "key_id": "none",
            "action_url": "https://a.example/action", "name": "n", "value": "v", "message": "m",
        ]
        known = texts.mapValues { .bytes($0.bytes) }
        for (name, secret) in [("oob_code", link.oobCode), ("token", custom.customToken)] {
            known[name] = .bytes(secret.withBytes { [UInt8]($0) })
        }
        for (name, number) in Self.numbers where known[name] == nil { known[name] = .varint(number) }
        try makeProviderAndServiceAccount(tenant)
    }

    private static let numbers: [String: UInt64] = [
        "request_type": 2, "role": 4, "port": 587, "security": 1, "delivery": 1, "valid_seconds": 3_600,
        "lifetime_seconds": 600, "publish_ahead_seconds": 60, "allow_private_addresses": 1,
    ]

    private func makeProviderAndServiceAccount(_ tenant: Text) throws {
        let provider = Provider(
            providerID: "oidc.corp", clientID: "client", issuer: "https://127.0.0.1:1", allowPrivateAddresses: true)
        let _: ProvidersCreateResponse = try client.call(
            "postern.v1.Providers/Create", ProvidersCreateRequest(tenantID: tenant, provider: provider))
        let _: ProjectCreateServiceAccountResponse = try client.call(
            "postern.v1.Project/CreateServiceAccount",
            ProjectCreateServiceAccountRequest(
                serviceAccountID: Text("robot-\(tenantCount)"), role: .app, scope: Scope(tenants: .all(true))))
    }

    private func connect() throws {
        client.close()
        client = try RawClient(port: port)
        client.apiKey = adminKey
        _ = try client.hello()
        let _: ProjectServerInfoResponse = try client.call(
            "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
    }

    // MARK: Requests

    /// A message in which every field has its right value, where one is known.
    func base(_ message: String, depth: Int = 0) -> WireTree {
        var tree = WireTree()
        var oneofs: Set<Int> = []
        for field in schema.messages[message] ?? [] where !field.isRepeated {
            if let oneof = field.oneof, !oneofs.insert(oneof).inserted { continue }
            if case .message(let type) = field.kind, depth < 3,
                !["update_mask", "apple", "webhook"].contains(field.name)
            {
                tree.fields.append(WireField(number: field.number, value: .message(base(type, depth: depth + 1))))
            } else if let value = known[field.name] {
                tree.fields.append(WireField(number: field.number, value: value))
            }
        }
        return tree
    }

    /// The request with `values` in the field at the end of the path; without an update mask when `mask` is nil.
    func request(
        _ method: ProtobufSchema.Method, _ path: [ProtobufSchema.Field], _ values: [WireValue], mask: String?,
        validateOnly: Bool
    ) -> [UInt8] {
        var tree = bases[method.input] ?? base(method.input)
        bases[method.input] = tree
        let fields = schema.messages[method.input] ?? []
        tree.set(
            path[...], values,
            siblings: { field in
                guard let oneof = field.oneof else { return [] }
                let owner = self.schema.messages.values.first { fields in
                    fields.contains { $0.name == field.name && $0.number == field.number && $0.oneof == oneof }
                }
                return (owner ?? []).filter { $0.oneof == oneof }.map(\.number)
            },
            rest: { field in
                if case .message(let type) = field.kind { self.base(type, depth: 1) } else { WireTree() }
            })
        if let mask, let field = fields.first(where: { $0.name == "update_mask" }), path.first?.name != "update_mask" {
            var inner = WireTree()
            inner.fields = [WireField(number: 1, value: .bytes([UInt8](mask.utf8)))]
            tree.fields.removeAll { $0.number == field.number }
            tree.fields.append(WireField(number: field.number, value: .message(inner)))
        }
        if validateOnly, let field = fields.first(where: { $0.name == "validate_only" }), path.first?.name != field.name
        {
            tree.fields.append(WireField(number: field.number, value: .varint(1)))
        }
        return tree.encoded
    }

    // MARK: Calls

    /// Sends a request and reads the outcome: the answer, or the first message of a stream. A stream that sends
    /// nothing before the answer to a PING counts as a success.
    func call(_ method: ProtobufSchema.Method, _ payload: [UInt8]) throws -> Answer {
        let stream = client.nextStream()
        let isStream = method.isClientStreaming || method.isServerStreaming
        let kind: StreamKind = method.isClientStreaming ? .remoteOpen : isStream ? .remoteClosed : .unary
        var buffer = ByteBuffer()
        let key = adminKey.bearer
        buffer.appendRequest(
            stream: stream, kind: kind, service: Text(method.service), method: Text(method.name),
            timeoutNanoseconds: 10_000_000_000,
            metadata: OutgoingMetadata(others: [OutgoingMetadata.Entry(key: "authorization", value: key)])
        ) { $0.append(contentsOf: payload) }
        if isStream {
            ControlFrame.ping(1, ack: false).append(to: &buffer)
        }
        try client.send(buffer.copyBytes())
        while true {
            let frame = try client.readFrame()
            switch frame.header.type {
            case .response where frame.header.stream == stream:
                let envelope = try WireResponse(decoding: frame.payload)
                guard let status = envelope.status, status.code != 0 else { return Answer(code: .ok, reason: "") }
                let failure = RawClient.failure(status)
                return Answer(code: failure.code, reason: failure.reason)
            case .data where frame.header.stream == stream, .ping where isStream:
                try connect()
                return Answer(code: .ok, reason: "")
            default: continue
            }
        }
    }

    func expectAlive() throws {
        let info: ProjectServerInfoResponse = try canary.call(
            "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
        if info.projectID.isEmpty { throw RawClient.RawError.closed }
    }
}
