import Base
import JSON
import Messages
import PosternClient

/// postern provider …
enum ProviderCommands {
    static let all = [create, get, list, update, delete, rebind, test]

    static let create = Command(
        path: ["provider", "create"], methods: ["Providers/Create"],
        summary: "Lets a tenant's users sign in with an identity provider.",
        example: "-t acme provider create google.com --client-id 123.apps.googleusercontent.com --client-secret-file s",
        operands: [.required("provider-id")], flags: ProviderSettings.flags, isValidatable: true
    ) { session in
        var settings = try ProviderSettings(session)
        let isEnabled = settings.paths.contains("enabled") ? settings.provider.enabled : true
        settings.provider.providerID = Text(session.arguments.operands[0])
        let request = ProvidersCreateRequest(
            tenantID: try session.tenantID(), provider: settings.provider, disabled: !isEnabled,
            validateOnly: session.isValidatingOnly)
        let provider = try await client(session).create(request, options: session.callOptions()).provider
        session.output.print(provider ?? Provider())
    }

    static let get = Command(
        path: ["provider", "get"], methods: ["Providers/Get"], summary: "Shows a provider; never its client secret.",
        example: "-t acme provider get google.com", operands: [.required("provider-id")], isReadOnly: true
    ) { session in
        let request = ProvidersGetRequest(
            tenantID: try session.tenantID(), providerID: Text(session.arguments.operands[0]))
        let provider = try await client(session).get(request, options: session.callOptions()).provider
        session.output.print(provider ?? Provider())
    }

    static let list = Command(
        path: ["provider", "list"], methods: ["Providers/List"],
        summary: "Lists the tenant's providers.", example: "-t acme provider list",
        flags: [limitFlag], isReadOnly: true
    ) { session in
        let client = try client(session)
        let tenantID = try session.tenantID()
        try await printPages(session) { token, size in
            let request = ProvidersListRequest(tenantID: tenantID, pageSize: size, pageToken: token)
            let page = try await client.list(request, options: session.callOptions())
            return (page.providers, page.nextPageToken)
        }
    }

    static let update = Command(
        path: ["provider", "update"], methods: ["Providers/Update"],
        summary: "Changes what is given; a change of a URL needs the client secret again.",
        example: "-t acme provider update google.com --enabled false", operands: [.required("provider-id")],
        flags: ProviderSettings.flags, isValidatable: true
    ) { session in
        var settings = try ProviderSettings(session)
        guard !settings.paths.isEmpty else {
            throw CommandError.usage("nothing to change", hint: "postern provider update google.com --enabled false")
        }
        settings.provider.providerID = Text(session.arguments.operands[0])
        let request = ProvidersUpdateRequest(
            tenantID: try session.tenantID(), provider: settings.provider,
            updateMask: ProtobufFieldMask(paths: settings.paths), validateOnly: session.isValidatingOnly)
        let provider = try await client(session).update(request, options: session.callOptions()).provider
        session.output.print(provider ?? Provider())
    }

    static let delete = Command(
        path: ["provider", "delete"], methods: ["Providers/Delete"],
        summary: "Ends signing in with a provider; its users keep their accounts.",
        example: "-t acme provider delete google.com", operands: [.required("provider-id")], isValidatable: true,
        prints: .noRecords
    ) { session in
        let id = session.arguments.operands[0]
        try session.confirm("Delete the provider \(id)? Who has no other way to sign in cannot do so any more.")
        let request = ProvidersDeleteRequest(
            tenantID: try session.tenantID(), providerID: Text(id), validateOnly: session.isValidatingOnly)
        _ = try await client(session).delete(request, options: session.callOptions())
        session.say("provider \(id) deleted")
    }

    static let rebind = Command(
        path: ["provider", "rebind"], methods: ["Providers/Rebind"],
        summary: "Says that a provider is the one that was at another issuer: its users keep their identities.",
        example: "-t acme provider rebind oidc.corp --from-issuer https://old.example",
        operands: [.required("provider-id")],
        flags: [Flag("from-issuer", "URL", "as a user's providers name it")], isValidatable: true, prints: .noRecords
    ) { session in
        let id = session.arguments.operands[0]
        guard let issuer = session.arguments.text("from-issuer") else {
            throw CommandError.usage("whose identities?", hint: "postern provider rebind \(id) --from-issuer URL")
        }
        try session.confirm("Let the users that \(issuer) knew be whoever \(id) now gives the same identifiers?")
        let request = ProvidersRebindRequest(
            tenantID: try session.tenantID(), providerID: Text(id), fromIssuer: issuer,
            validateOnly: session.isValidatingOnly)
        for issuer in try await client(session).rebind(request, options: session.callOptions()).issuers {
            session.say("identities of \(issuer) count for \(id)")
        }
    }

    static let test = Command(
        path: ["provider", "test"], methods: ["Providers/Test"],
        summary: "Asks a provider what signing in would ask it, and changes nothing.",
        example: "-t acme provider test google.com", operands: [.required("provider-id")], isReadOnly: true
    ) { session in
        let request = ProvidersTestRequest(
            tenantID: try session.tenantID(), providerID: Text(session.arguments.operands[0]))
        let response = try await client(session).test(request, options: session.callOptions())
        session.output.print(response.steps)
        guard response.ok else { throw CommandError(fault(response.steps)) }
    }

    /// What does not work. Only authorization codes need a token endpoint, and only access tokens a token check.
    static func fault(_ steps: [ProviderTestStep]) -> String {
        let failed = steps.filter { $0.result == .failed }.map(\.name)
        let credential =
            switch failed {
            case ["token_exchange"]: "an authorization code of this provider"
            case ["token_check"]: "an access token of this provider"
            case ["token_check", "token_exchange"]: "an access token or an authorization code of this provider"
            default: "this provider"
            }
        return "signing in with \(credential) does not work as it is"
    }

    private static func client(_ session: Session) throws -> ProvidersClient {
        ProvidersClient(channel: try session.channel())
    }
}

/// The settings that a command line names, and the field mask that lists them.
struct ProviderSettings {
    var provider = Provider()
    var paths: [Text] = []

    static let flags = [
        Flag("client-id", "ID", "what the provider calls the application"),
        Flag("client-secret-file", "FILE", "holds the client secret, or Apple's private key; - is standard input"),
        Flag("display-name", "TEXT", "the name that people see"),
        Flag("enabled", "true|false", "whether users can sign in with it"),
        Flag("audiences", "ID,…", "further client ids whose ID tokens are taken"),
        Flag("issuer", "URL", "of an oidc.* provider, or instead of the known one"),
        Flag("discovery-url", "URL", "instead of <issuer>/.well-known/openid-configuration"),
        Flag("jwks-url", "URL", "replaces the known or discovered one, as the next flags do"),
        Flag("token-url", "URL", "where codes are exchanged"),
        Flag("user-info-url", "URL", "where the server asks whose an access token is"),
        Flag("authorization-url", "URL", "where account auth-uri sends the browser"),
        Flag("token-check-url", "URL", "where the server asks for which client an access token was made"),
        Flag("trust", "default|never|domains|always", "when an email counts as verified because the provider says so"),
        Flag("trust-domains", "NAME,…", "with --trust domains: the domains of such emails"),
        Flag("require-claim", "NAME=VALUE", "with --trust: a claim that must be there as well"),
        Flag("accept-unbound-access-tokens", "true|false", "also access tokens that may be another client's"),
        Flag("accept-unknown-nonce", "true|false", "also ID tokens whose nonce the application never learns"),
        Flag("allow-http-loopback", "true|false", "http to this machine, for development (project-admin)"),
        Flag("allow-private-addresses", "true|false", "a provider in the own network (project-admin)"),
        Flag("apple-team-id", "ID", "with --apple-key-id: make Apple's client secrets from the private key"),
        Flag("apple-key-id", "ID", "the private key's id"),
    ]

    private static let levels: [(String, TrustLevel)] = [
        ("default", .unspecified), ("never", .never), ("domains", .domains), ("always", .always),
    ]

    init(_ session: Session) throws {
        try self.init(session.arguments)
        guard let secret = try session.secret(inFileOf: "client-secret-file") else { return }
        provider.clientSecret = secret
        paths.append("client_secret")
    }

    init(_ arguments: Arguments) throws(CommandError) {
        note("client_id", arguments.text("client-id")) { $0.clientID = $1 }
        note("display_name", arguments.text("display-name")) { $0.displayName = $1 }
        note("enabled", try arguments.bool("enabled")) { $0.enabled = $1 }
        note("additional_audiences", try arguments.restriction("audiences")) { $0.additionalAudiences = $1 }
        note("issuer", arguments.text("issuer")) { $0.issuer = $1 }
        noteEndpoint("endpoints.discovery", arguments.text("discovery-url"), \.discovery)
        noteEndpoint("endpoints.jwks", arguments.text("jwks-url"), \.jwks)
        noteEndpoint("endpoints.token", arguments.text("token-url"), \.token)
        noteEndpoint("endpoints.user_info", arguments.text("user-info-url"), \.userInfo)
        noteEndpoint("endpoints.authorization", arguments.text("authorization-url"), \.authorization)
        noteEndpoint("endpoints.token_check", arguments.text("token-check-url"), \.tokenCheck)
        note("trust", try Self.trust(arguments)) { $0.trust = $1 }
        note("accept_unbound_access_tokens", try arguments.bool("accept-unbound-access-tokens")) {
            $0.acceptUnboundAccessTokens = $1
        }
        note("accept_unknown_nonce", try arguments.bool("accept-unknown-nonce")) { $0.acceptUnknownNonce = $1 }
        note("allow_http_loopback", try arguments.bool("allow-http-loopback")) { $0.allowHTTPLoopback = $1 }
        note("allow_private_addresses", try arguments.bool("allow-private-addresses")) { $0.allowPrivateAddresses = $1 }
        let (team, key) = (arguments.text("apple-team-id"), arguments.text("apple-key-id"))
        guard (team == nil) == (key == nil) else { throw .usage("--apple-team-id and --apple-key-id go together") }
        if let team, let key { note("apple", AppleKey(teamID: team, keyID: key)) { $0.apple = $1 } }
    }

    private mutating func note<Value>(_ path: Text, _ value: Value?, _ set: (inout Provider, Value) -> Void) {
        guard let value else { return }
        set(&provider, value)
        paths.append(path)
    }

    private mutating func noteEndpoint(
        _ path: Text, _ url: Text?, _ field: WritableKeyPath<ProviderEndpoints, Text>
    ) {
        note(path, url) { provider, url in
            var endpoints = provider.endpoints ?? ProviderEndpoints()
            endpoints[keyPath: field] = url
            provider.endpoints = endpoints
        }
    }

    /// The trust is replaced as a whole.
    private static func trust(_ arguments: Arguments) throws(CommandError) -> ProviderTrust? {
        let domains = try arguments.restriction("trust-domains")
        let claim = arguments.value("require-claim")
        guard let level = try arguments.choice("trust", of: levels) else {
            guard domains == nil, claim == nil else {
                throw .usage("--trust-domains and --require-claim need --trust")
            }
            return nil
        }
        var trust = ProviderTrust(level: level, domains: domains ?? [])
        if let claim {
            let parts = claim.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2 else {
                throw .usage("--require-claim is NAME=VALUE, not \"\(claim)\"", hint: "for example hd=example.com")
            }
            trust.requiredClaim = RequiredClaim(name: Text(parts[0]), value: Text(parts[1]))
        }
        return trust
    }
}

extension Provider: Record {
    static let columns = ["provider_id", "enabled", "display_name", "client_id", "issuer", "updated_at_micros"]

    var id: String { providerID.string }

    var json: JSONValue {
        var shown = self
        shown.endpoints = endpoints ?? ProviderEndpoints()
        return shown.fieldsJSON
    }
}

extension ProviderTestStep: Record {
    static let columns = ["name", "result", "duration_nanos", "message"]

    var id: String { name.string }
}
