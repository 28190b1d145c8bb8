import Base
import Crypto
import JSON
import Messages
import Outbound
import Reactor
import Rules
import TestSupport

@testable import Federation

/// A client of identity providers, and one such provider; the clock stands still.
struct FederationFixture {
    let client: ProviderClient
    let provider: FakeIdentityProvider
    let clock: ManualClock

    var now: Timestamp { clock.clock.now() }

    func configuration(
        _ providerID: Text = "oidc.test", tenantID: Text = "t", _ change: (inout Provider) -> Void = { _ in }
    ) -> ProviderConfiguration {
        var configured = provider.provider(providerID)
        change(&configured)
        guard
            let configuration = ProviderConfiguration(
                tenantID: tenantID, provider: configured, hasClientSecret: !configured.clientSecret.isEmpty,
                openClientSecret: { [configured] in configured.clientSecret })
        else { preconditionFailure("\(providerID) is no provider id") }
        return configuration
    }

    func prove(
        _ proof: ProviderProof, nonce: Text = .empty, _ configuration: ProviderConfiguration? = nil
    ) async throws -> ProviderProfile {
        try await client.prove(
            proof, nonce: nonce, configuration ?? self.configuration(), now: now,
            deadline: .now.advanced(by: .seconds(20))
        ).profile
    }

    /// The error that proving throws; nil if it succeeds.
    func error(
        _ proof: ProviderProof, nonce: Text = .empty, _ configuration: ProviderConfiguration? = nil
    ) async -> FederationError? {
        do {
            _ = try await prove(proof, nonce: nonce, configuration)
            return nil
        } catch {
            return error as? FederationError
        }
    }
}

/// All requests of a test fall into one window of `keyTime`, unless the test moves the clock.
func withFederation<Result>(
    keyTime: Duration = .seconds(60), _ body: (FederationFixture) async throws -> Result
) async throws -> Result {
    let clock = ManualClock()
    let pool = WorkerPool(name: "outbound", workers: 4, queueMax: 64, queueMaxPerTenant: 64)
    let provider = FakeIdentityProvider(clock: clock.clock)
    defer { end(pool, provider) }
    var limits = Limits()
    limits.providerKeyTimePerTenantMax = keyTime
    let client = ProviderClient(client: HTTPClient(pool: OutboundPool(pool)), limits: limits)
    return try await body(FederationFixture(client: client, provider: provider, clock: clock))
}

/// Closing may block a test's thread for a moment.
private func end(_ pool: WorkerPool, _ provider: FakeIdentityProvider) {
    provider.close()
    pool.close()
}

extension FakeIdentityProvider.User {
    static let ann = FakeIdentityProvider.User(
        "4711", email: "ann@gmail.com", name: "Ann", picture: "https://img.example/ann.png")
}

/// A test may wait for a new RSA key.
func newKey(_ algorithm: SigningAlgorithm) -> SigningKey { SigningKey.generate(algorithm) }
