import Base

/// The circumstances under which a provider is asked about one credential: the configuration, which names the tenant
/// that pays for the answers, the time of the request, and its deadline.
struct ProviderCall: Sendable {
    let configuration: ProviderConfiguration
    let now: Timestamp
    let deadline: Instant
    /// Whom the call is for, among those who share the tenant's turns (`OutboundPool`).
    let source: Text

    init(_ configuration: ProviderConfiguration, now: Timestamp, deadline: Instant, source: Text = .empty) {
        self.configuration = configuration
        self.now = now
        self.deadline = deadline
        self.source = source
    }

    var tenantID: Text { configuration.tenantID }
}
