import Messages

/// A method as proto/ declares it: its name, its shape, and the rule that the gate enforces (postern.v1.MethodRule).
struct MethodDescriptor: Sendable {
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
    var fullName: String { "\(service)/\(method)" }
}
