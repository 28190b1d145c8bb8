public import Base
public import Crypto
public import JSON
public import Messages
import Reactor
import Synchronization

/// A real identity provider on 127.0.0.1 with its own keys: OpenID Connect, and the access-token endpoints of Facebook,
/// GitHub, Twitter, Google and RFC 7662 in their own shapes. It lies, stalls and floods when it is told to.
public final class FakeIdentityProvider: Sendable {
    /// A person with an account at the provider.
    public struct User: Sendable {
        public var subject: Text
        public var email: Text
        /// The claim as it is written; nil leaves it out.
        public var emailVerified: JSONValue?
        public var name: Text
        public var picture: Text
        /// Further claims.
        public var claims: [JSONValue.Member]

        public init(
            _ subject: Text, email: Text = .empty, emailVerified: JSONValue? = true, name: Text = .empty,
            picture: Text = .empty, claims: [JSONValue.Member] = []
        ) {
            self.subject = subject
            self.email = email
            self.emailVerified = emailVerified
            self.name = name
            self.picture = picture
            self.claims = claims
        }
    }

    /// What every endpoint does instead of answering.
    public enum Misbehaviour: Sendable, Equatable, CaseIterable {
        case none
        /// Answers 503.
        case down
        /// Never answers.
        case silent
        /// Answers with 10 MB.
        case flood
        /// Redirects to itself, for ever.
        case redirect
        /// Answers with JSON that breaks off.
        case brokenJSON
        /// Answers with an HTML page.
        case html
        /// Answers with two members of one name.
        case duplicateMembers
        /// Answers with an empty object.
        case nothing
    }

    struct Grant: Sendable {
        var user: User
        var clientID: String
        var redirectURI = ""
        /// base64url of the verifier's SHA-256; empty = none was sent.
        var challenge = ""
        var nonce: Text = .empty
    }

    struct State {
        var misbehaviour = Misbehaviour.none
        var keys: [SigningKey] = []
        var cacheControl = "max-age=3600"
        var clients: [String: String] = ["client-1": "secret-1"]
        var codes: [String: Grant] = [:]
        var accessTokens: [String: Grant] = [:]
        var count = 0
        var hasIDTokens = true
        var hasAuthorizationEndpoint = true
        var hasDiscovery = true
        /// Members of the discovery document that are not the usual ones.
        var discoveryChanges: [(name: Text, value: JSONValue?)] = []
        /// The status with which introspection answers a wrong client.
        var wrongClientStatus = 401
        var takesPostedSecrets = true
        var takesBasicSecrets = true
        var discoveryIssuer: Text?
        var discoveryJWKS: Text?
        var keyIssuers: [Text: Text] = [:]
        var otherKeys: [JSONValue] = []
        var onRequest: @Sendable (_ path: String) -> Void = { _ in }
        /// RS256 keys take long to make: one is made for all tests.
        static let rsa = SigningKey.generate(.rs256)
    }

    let state: Mutex<State>
    let clock: Clock
    private let serverBox = Mutex<FakeHTTPServer?>(nil)

    /// Starts with one RS256 key, and client "client-1" with the secret "secret-1".
    public init(clock: Clock) {
        self.clock = clock
        var state = State()
        state.keys = [State.rsa]
        self.state = Mutex(state)
        let server = FakeHTTPServer { [unowned self] in answer($0) }
        serverBox.withLock { $0 = server }
    }

    public var server: FakeHTTPServer {
        guard let server = serverBox.withLock({ $0 }) else { preconditionFailure("the server is made in init") }
        return server
    }

    public var issuer: Text { Text(server.url) }

    /// Cuts all connections.
    public func close() { server.close() }

    // MARK: What it does

    public func misbehave(_ misbehaviour: Misbehaviour) { state.withLock { $0.misbehaviour = misbehaviour } }

    public func setCacheControl(_ value: String) { state.withLock { $0.cacheControl = value } }

    /// The issuer that the discovery document names, right or wrong.
    public func setDiscoveryIssuer(_ issuer: Text) { state.withLock { $0.discoveryIssuer = issuer } }

    /// Where the discovery document says that the keys are.
    public func setDiscoveryJWKS(_ url: Text?) { state.withLock { $0.discoveryJWKS = url } }

    /// Whether the token endpoint answers with an ID token, too.
    public func setHasIDTokens(_ value: Bool) { state.withLock { $0.hasIDTokens = value } }

    /// Whether the discovery document names an authorization endpoint.
    public func setHasAuthorizationEndpoint(_ value: Bool) { state.withLock { $0.hasAuthorizationEndpoint = value } }

    /// The status with which introspection answers a wrong client: 401 or 400, as RFC 6749 §5.2 allows.
    public func setWrongClientStatus(_ value: Int) { state.withLock { $0.wrongClientStatus = value } }

    /// Whether there is a discovery document.
    public func setHasDiscovery(_ value: Bool) { state.withLock { $0.hasDiscovery = value } }

    /// Replaces a member of the discovery document; nil removes it.
    public func setDiscovery(_ name: Text, _ value: JSONValue?) {
        state.withLock { $0.discoveryChanges.append((name, value)) }
    }

    /// How clients may authenticate: by the form, or by HTTP Basic authentication.
    public func setTakesSecrets(posted: Bool, basic: Bool) {
        state.withLock { ($0.takesPostedSecrets, $0.takesBasicSecrets) = (posted, basic) }
    }

    /// From now on only these keys are published and sign.
    public func setKeys(_ keys: [SigningKey]) { state.withLock { $0.keys = keys } }

    /// These keys are published besides, as they are.
    public func setOtherKeys(_ keys: [JSONValue]) { state.withLock { $0.otherKeys = keys } }

    /// What else happens at each request, before it is answered.
    public func onRequest(_ body: @escaping @Sendable (_ path: String) -> Void) {
        state.withLock { $0.onRequest = body }
    }

    /// The issuer that a key in the set says it is for.
    public func setIssuer(ofKey keyID: Text, _ issuer: Text) { state.withLock { $0.keyIssuers[keyID] = issuer } }

    /// How often the key set was fetched.
    public var jwksRequestCount: Int { server.requestCount("/jwks") }

    // MARK: What it hands out

    /// The standard claims of an ID token for `user`, good for an hour.
    public func claims(_ user: User, audience: Text = "client-1", nonce: Text = .empty) -> JSONValue {
        var members = userClaims(user)
        let now = clock.now().seconds
        members += [
            .init("iss", .string(issuer)), .init("aud", .string(audience)), .init("iat", .integer(now)),
            .init("exp", .integer(now + 3_600)),
        ]
        if !nonce.isEmpty { members.append(.init("nonce", .string(nonce))) }
        return .object(members)
    }

    /// A genuine ID token for `user`.
    public func idToken(_ user: User, audience: Text = "client-1", nonce: Text = .empty) -> Secret {
        sign(claims(user, audience: audience, nonce: nonce))
    }

    /// These claims, signed with `key` or the newest one; `header` replaces members of the header (nil removes them).
    public func sign(
        _ claims: JSONValue, key: SigningKey? = nil, header changes: [(Text, JSONValue?)] = []
    ) -> Secret {
        sign(payload: claims.serialized(), key: key, header: changes)
    }

    /// The same for bytes that need not be JSON, or that hold what `JSONValue` cannot.
    public func sign(
        payload: [UInt8], key: SigningKey? = nil, header changes: [(Text, JSONValue?)] = []
    ) -> Secret {
        let signer = key ?? state.withLock { $0.keys[0] }
        var header: JSONValue = [
            "alg": .string(Text(signer.algorithm.rawValue)), "kid": .string(signer.publicKey.keyID), "typ": "JWT",
        ]
        for (name, value) in changes { header = header.replacing(name, value) }
        let dot = [UInt8(ascii: ".")]
        let signed = Base64.url.encode(header.serialized()) + dot + Base64.url.encode(payload)
        return Secret(signed + dot + Base64.url.encode(signer.sign(signed)))
    }

    /// An access token of `user` for a client.
    public func accessToken(_ user: User, clientID: String = "client-1") -> Secret {
        state.withLock { state in
            state.count += 1
            let token = "at-\(state.count)"
            state.accessTokens[token] = Grant(user: user, clientID: clientID)
            return Secret(token)
        }
    }

    /// The code that the end user's browser brings back, good once.
    public func code(
        _ user: User, clientID: String = "client-1", redirectURI: Text = .empty, verifier: Secret = .empty,
        nonce: Text = .empty
    ) -> Secret {
        let challenge = verifier.isEmpty ? "" : Self.challenge(verifier.withBytes { [UInt8]($0) })
        let grant = Grant(
            user: user, clientID: clientID, redirectURI: redirectURI.string, challenge: challenge, nonce: nonce)
        return code(for: grant)
    }

    func code(for grant: Grant) -> Secret {
        state.withLock { state in
            state.count += 1
            state.codes["code-\(state.count)"] = grant
            return Secret("code-\(state.count)")
        }
    }

    /// RFC 7636 §4.2.
    static func challenge(_ verifier: [UInt8]) -> String { Base64.url.encodeToString(Digest.sha256(verifier)) }

    /// A configuration of `providerID` with every endpoint here, client-1 and its secret.
    public func provider(_ providerID: Text) -> Provider {
        var provider = Provider()
        provider.providerID = providerID
        provider.enabled = true
        provider.clientID = "client-1"
        provider.clientSecret = Secret("secret-1")
        provider.allowHTTPLoopback = true
        var paths = (userInfo: "/userinfo", tokenCheck: "")
        switch providerID {
        case "facebook.com": paths = ("/me", "/debug_token")
        case "github.com": paths = ("/user", "/applications/{client_id}/token")
        case "twitter.com": paths = ("/2/users/me", "")
        case "google.com": paths = ("/userinfo", "/tokeninfo")
        case "linkedin.com": paths = ("/userinfo", "/introspect")
        default: break
        }
        if !["github.com", "twitter.com"].contains(providerID) { provider.issuer = issuer }
        if !providerID.bytes.starts(with: "oidc.".utf8) {
            provider.endpoints = ProviderEndpoints(
                jwks: Text(server.url + "/jwks"), token: Text(server.url + "/token"),
                userInfo: Text(server.url + paths.userInfo),
                tokenCheck: paths.tokenCheck.isEmpty ? .empty : Text(server.url + paths.tokenCheck))
        }
        return provider
    }

    func userClaims(_ user: User) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = [.init("sub", .string(user.subject))]
        if !user.email.isEmpty { members.append(.init("email", .string(user.email))) }
        if let verified = user.emailVerified { members.append(.init("email_verified", verified)) }
        if !user.name.isEmpty { members.append(.init("name", .string(user.name))) }
        if !user.picture.isEmpty { members.append(.init("picture", .string(user.picture))) }
        return members + user.claims
    }
}

extension JSONValue {
    /// The object with one member changed, added, or (nil) removed.
    public func replacing(_ name: Text, _ value: JSONValue?) -> JSONValue {
        var members = object ?? []
        let index = members.firstIndex { $0.name == name }
        switch (index, value) {
        case (let index?, let value?): members[index].value = value
        case (let index?, nil): members.remove(at: index)
        case (nil, let value?): members.append(Member(name, value))
        case (nil, nil): break
        }
        return .object(members)
    }
}

/// Runs `body` with a fresh provider.
public func withIdentityProvider<Result>(
    clock: Clock = .system, _ body: (FakeIdentityProvider) async throws -> Result
) async throws -> Result {
    let provider = FakeIdentityProvider(clock: clock)
    defer { provider.close() }
    return try await body(provider)
}
