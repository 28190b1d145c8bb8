import Base
import Identity
import Messages
import Store

/// The services that all calls share.
final class ServiceContext: Sendable {
    let project: Project
    let limits: Limits
    let health: HealthStatus
    let version: Text
    let log: Log
    /// Full names of all services, for health.
    let serviceNames: Set<Text>
    let tenantCalls: TenantCalls
    let sessionWatches: SessionWatches
    let lent: Lent

    /// What most calls use, lent without a count of references, because all loops share it (docs/decisions/0132). The
    /// project and the context hold these objects.
    struct Lent: Sendable {
        let callers: Unmanaged<CallerDirectory>
        let tenantCalls: Unmanaged<TenantCalls>
        let idTokenCheck: Unmanaged<TokenCheck>
        let cookieCheck: Unmanaged<TokenCheck>
    }

    init(project: Project, health: HealthStatus, version: Text, log: Log) {
        self.serviceNames = Set(PublishedFile.all.flatMap(\.services))
        self.tenantCalls = TenantCalls(limits: project.limits)
        self.sessionWatches = SessionWatches(limits: project.limits.administration)
        self.project = project
        self.limits = project.limits
        self.health = health
        self.version = version
        self.log = log
        self.lent = Lent(
            callers: .passUnretained(project.callers), tenantCalls: .passUnretained(tenantCalls),
            idTokenCheck: .passUnretained(project.tokens.check),
            cookieCheck: .passUnretained(project.tokens.cookieCheck))
    }
}
