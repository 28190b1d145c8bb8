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

    init(project: Project, health: HealthStatus, version: Text, log: Log) {
        self.serviceNames = Set(PublishedFile.all.flatMap(\.services))
        self.tenantCalls = TenantCalls(limits: project.limits)
        self.project = project
        self.limits = project.limits
        self.health = health
        self.version = version
        self.log = log
    }
}
