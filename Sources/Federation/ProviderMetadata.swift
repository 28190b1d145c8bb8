import Base
import Crypto
import Messages
import Outbound
import Rules

/// The discovery documents and key sets of all providers that are used, shared by the tenants that use the same one.
///
/// Nothing is kept for a provider until somebody signs in with it. Any thread.
final class ProviderMetadata: Sendable {
    /// A URL and the policy under which it is fetched. Tenants with different policies do not share fetched values.
    private struct Source: Hashable, Sendable {
        /// A URL.
        let location: Text
        let policy: NetworkPolicy
    }

    private let requests: ProviderRequests
    private let documents: FetchCache<Source, DiscoveryDocument>
    private let keySets: FetchCache<Source, ProviderKeySet>

    let checkedKeys = Counter()

    static let providersMax = 256

    init(requests: ProviderRequests) {
        self.requests = requests
        self.documents = FetchCache(entriesMax: Self.providersMax)
        self.keySets = FetchCache(entriesMax: Self.providersMax)
    }

    /// How many providers have cached values here.
    var count: Int { max(documents.count, keySets.count) }

    /// The provider's discovery document. NO_ISSUER if its URL is unknown, OTHER_ISSUER if it is another issuer's.
    func document(of configuration: ProviderConfiguration, now: Timestamp) async throws -> DiscoveryDocument {
        guard let location = configuration.discoveryURL else { throw FederationError.misconfigured(.noIssuer) }
        let source = Source(location: location, policy: configuration.policy)
        let document = try await documents.value(for: source, tenant: configuration.tenantID, now: now) { [self] in
            try await fetch(source, configuration, now, DiscoveryDocument.init(parsing:))
        }
        guard document.issuer == configuration.issuer else { throw FederationError.misconfigured(.otherIssuer) }
        return document
    }

    /// How the client proves itself at an endpoint. `acceptsPosted` reads this from the discovery document.
    ///
    /// If the document cannot be had, the client uses HTTP Basic authentication, which every server supports (RFC 6749
    /// §2.3.1): an endpoint that is configured must not depend on the document. OVERLOADED.
    func clientAuthentication(
        of configuration: ProviderConfiguration, now: Timestamp, _ acceptsPosted: (DiscoveryDocument) -> Bool
    ) async throws -> KnownProvider.ClientAuthentication {
        let known = configuration.known.clientAuthentication
        guard known == .discovered else { return known }
        guard configuration.hasClientSecret else { return .post }
        do {
            let document = try await document(of: configuration, now: now)
            return acceptsPosted(document) ? .post : .basic
        } catch let error as FederationError where error != .overloaded {
            return .basic
        }
    }

    /// The provider's keys, if possible a set that `isEnough` accepts.
    func keys(
        of configuration: ProviderConfiguration, now: Timestamp, isEnough: @escaping @Sendable (ProviderKeySet) -> Bool
    ) async throws -> ProviderKeySet {
        // Checked before any request: for a provider without ID tokens, a token of any issuer is wrong.
        guard !configuration.issuer.isEmpty else { throw FederationError.misconfigured(.noIssuer) }
        var location = configuration.endpoints.jwks
        if location.isEmpty {
            let document = try await document(of: configuration, now: now)
            guard document.namesKeys else { throw FederationError.misconfigured(.noKeys) }
            // Checked before it becomes a key of the cache that all tenants share.
            guard let url = document.jwksURL else { throw FederationError.misconfigured(.badEndpoint) }
            location = url.text
        }
        let source = Source(location: location, policy: configuration.policy)
        return try await keySets.value(
            for: source, tenant: configuration.tenantID, now: now, isEnough: isEnough
        ) { [self] in
            try await fetch(source, configuration, now, ProviderKeySet.init(parsing:))
        }
    }

    /// The keys at these places that may be used. Keys that were not checked yet are checked now. OVERLOADED.
    func usableKeys(
        _ places: [Int], of keys: ProviderKeySet, for call: ProviderCall
    ) async throws -> [VerificationKey] {
        try await keys.checkOnce(places, tenant: call.tenantID) {
            try await requests.compute(for: call) { [checkedKeys] in
                checkedKeys.add(UInt64(clamping: keys.check(places)))
            }
        }
        return keys.keys(places)
    }

    /// OVERLOADED if the tenant's time is spent, BAD_ENDPOINT, the errors of a request, and BAD_ANSWER if `parse`
    /// returns nil.
    private func fetch<Value>(
        _ source: Source, _ configuration: ProviderConfiguration, _ now: Timestamp,
        _ parse: @escaping @Sendable ([UInt8]) -> Value?
    ) async throws -> FetchCache<Source, Value>.Fetched {
        let request = HTTPRequest(
            try configuration.url(source.location), fields: [ProviderRequests.json], policy: source.policy)
        let call = ProviderCall(configuration, now: now, deadline: Self.deadline)
        return try await requests.send(request, for: call) { answer in
            guard answer.isSuccess, let value = parse(answer.body) else {
                throw FederationError.unavailable(.badAnswer)
            }
            return .init(value: value, lifetime: answer.maxAge)
        }
    }

    /// The deadline of a fetch. A fetch serves many callers, so it has a deadline of its own.
    private static var deadline: Instant { .now.advanced(by: .seconds(10)) }
}
