public import Base
public import JSON
import Messages
public import Outbound
public import Rules
import Tokens

/// A credential that an application got from a provider.
public enum ProviderProof: Sendable {
    /// OpenID Connect.
    case idToken(Secret)
    /// OAuth 2.0.
    case accessToken(Secret)
    /// An authorization code, to be exchanged for tokens. `redirectURI` and `verifier` are those of the authorization
    /// request; empty if it had none.
    case code(Secret, redirectURI: Text, verifier: Secret)
}

/// Checks credentials that applications bring from identity providers, by asking the providers. Any thread; keeps only
/// discovery documents and key sets.
public final class ProviderClient: Sendable {
    let metadata: ProviderMetadata
    let userInfo: UserInfo
    let exchange: CodeExchange
    public let counts = ProviderCounts()
    let binding: TokenBinding
    private let tokenByteCountMax: Int

    public init(client: HTTPClient, limits: Limits) {
        let requests = ProviderRequests(
            client: client, counts: counts, time: ProcessorBudget(limit: limits.providerKeyTimePerTenantMax))
        self.metadata = ProviderMetadata(requests: requests)
        self.userInfo = UserInfo(requests: requests, metadata: metadata)
        self.exchange = CodeExchange(
            requests: requests, metadata: metadata, tokenByteCountMax: limits.providerTokenMax)
        self.binding = TokenBinding(requests: requests, metadata: metadata)
        self.tokenByteCountMax = limits.providerTokenMax
    }

    public var checkedKeys: Counter { metadata.checkedKeys }
    public var refusedKeyTimes: Counter { userInfo.requests.time.refused }

    /// The number of providers with a cached discovery document or key set.
    public var cachedProviderCount: Int { metadata.count }

    /// Returns the user's profile as the provider reports it, and whether its email is to be trusted.
    ///
    /// If there is a `nonce`, only an ID token that carries it is accepted. `source`: whom the proof is for, among
    /// those who share the tenant's turns. Throws `FederationError`, `CancellationError`, and the `Failure` of a full
    /// or closing pool.
    public func prove(
        _ proof: ProviderProof, nonce: Text, _ configuration: ProviderConfiguration, now: Timestamp, deadline: Instant,
        source: Text = .empty
    ) async throws -> (profile: ProviderProfile, isEmailTrusted: Bool) {
        let call = ProviderCall(configuration, now: now, deadline: deadline, source: source)
        let profile = try await profile(proof, nonce, call)
        return (profile, configuration.trust.isTrusted(profile))
    }

    /// Returns what `prove` would return if the provider reported these claims. MISSING_SUBJECT.
    public func explain(
        _ claims: JSONValue, _ configuration: ProviderConfiguration
    ) throws(FederationError) -> (profile: ProviderProfile, isEmailTrusted: Bool) {
        let profile = try ProviderProfile(openID: claims)
        return (profile, configuration.trust.isTrusted(profile))
    }

    private func profile(
        _ proof: ProviderProof, _ nonce: Text, _ call: ProviderCall
    ) async throws -> ProviderProfile {
        switch proof {
        case .idToken(let token):
            return try await verify(token, nonce, isFromProvider: false, call)
        case .accessToken(let token):
            try checkSize(token)
            guard nonce.isEmpty else { throw FederationError.flawed(.wrongNonce) }
            let owner = try await binding.check(token, call)
            let profile = try await userInfo.profile(token, call)
            // Both answers are about one token. If they name different users, neither is believed.
            if let owner, owner != profile.subject { throw FederationError.rejected }
            return profile
        case .code(let code, let redirectURI, let verifier):
            try checkSize(code)
            let tokens = try await exchange.exchange(code, redirectURI: redirectURI, verifier: verifier, call)
            if let idToken = tokens.idToken {
                return try await verify(idToken, nonce, isFromProvider: true, call)
            }
            guard nonce.isEmpty else { throw FederationError.flawed(.wrongNonce) }
            guard let accessToken = tokens.accessToken else { throw FederationError.unavailable(.badAnswer) }
            // The token was issued to us, because we hold the client secret for the code.
            return try await userInfo.profile(accessToken, call)
        }
    }

    private func verify(
        _ secret: Secret, _ nonce: Text, isFromProvider: Bool, _ call: ProviderCall
    ) async throws -> ProviderProfile {
        let token = try ProviderToken(secret, byteCountMax: tokenByteCountMax)
        func checkSignature(isEnough: @escaping @Sendable (ProviderKeySet) -> Bool) async throws {
            let keys = try await metadata.keys(of: call.configuration, now: call.now, isEnough: isEnough)
            let candidates = try token.candidates(in: keys)
            try token.checkSignature(try await metadata.usableKeys(candidates, of: keys, for: call))
        }
        do {
            try await checkSignature { $0.has(token.jwt.keyID ?? .empty) }
        } catch is FederationError where token.jwt.keyID == nil {
            // Without a key id, nothing shows that the provider has a new key.
            try await checkSignature { _ in false }
        }
        try token.checkClaims(call.configuration, nonce: nonce, isFromProvider: isFromProvider, now: call.now)
        return try ProviderProfile(openID: token.claims)
    }

    private func checkSize(_ token: Secret) throws(FederationError) {
        guard (1...tokenByteCountMax).contains(token.byteCount) else { throw .flawed(.malformed) }
    }
}
