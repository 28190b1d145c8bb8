import Base

/// The circumstances under which a provider is asked about one credential: the configuration, which names the tenant
/// that pays for the answers, the time of the request, and its deadline.
struct ProviderCall: Sendable {
    let configuration: ProviderConfiguration
    let now: Timestamp
    let deadline: Instant

    init(_ configuration: ProviderConfiguration, now: Timestamp, deadline: Instant) {
        self.configuration = configuration
        self.now = now
        self.deadline = deadline
    }

    var tenantID: Text { configuration.tenantID }
}
