import Messages

/// A method as proto/ declares it: its name, its shape, and the rule that the gate enforces (postern.v1.MethodRule).
///
/// There is one object for each method, which calls refer to.
final class MethodDescriptor: Sendable {
    let service: String
    let method: String
    let requestStreaming: Bool
    let responseStreaming: Bool
    let role: Role
    let tenant: TenantRule
    let timeoutMillis: Int64
    let idempotent: Bool
    let mutation: Bool
    let refusedWhenDisabled: Bool
    let allowedBeyondQuota: Bool
    let allowedWhenSuspended: Bool

    /// The method's name in OpenTelemetry and the log: `postern.v1.Users/Get`.
    let fullName: String

    init(
        service: String, method: String, requestStreaming: Bool, responseStreaming: Bool, role: Role,
        tenant: TenantRule, timeoutMillis: Int64, idempotent: Bool, mutation: Bool, refusedWhenDisabled: Bool,
        allowedBeyondQuota: Bool, allowedWhenSuspended: Bool
    ) {
        self.service = service
        self.method = method
        self.requestStreaming = requestStreaming
        self.responseStreaming = responseStreaming
        self.role = role
        self.tenant = tenant
        self.timeoutMillis = timeoutMillis
        self.idempotent = idempotent
        self.mutation = mutation
        self.refusedWhenDisabled = refusedWhenDisabled
        self.allowedBeyondQuota = allowedBeyondQuota
        self.allowedWhenSuspended = allowedWhenSuspended
        self.fullName = "\(service)/\(method)"
    }

    /// The method `other`, as a method of the service `service`.
    convenience init(service: String, as other: MethodDescriptor) {
        self.init(
            service: service, method: other.method, requestStreaming: other.requestStreaming,
            responseStreaming: other.responseStreaming, role: other.role, tenant: other.tenant,
            timeoutMillis: other.timeoutMillis, idempotent: other.idempotent, mutation: other.mutation,
            refusedWhenDisabled: other.refusedWhenDisabled, allowedBeyondQuota: other.allowedBeyondQuota,
            allowedWhenSuspended: other.allowedWhenSuspended)
    }
}
