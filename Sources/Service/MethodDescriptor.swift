import Messages

/// What proto/ says about a method: its name, its shape, and the rule the gate enforces (postern.v1.MethodRule).
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

    /// As OpenTelemetry and the log write it: `postern.v1.Users/Get`.
    var fullName: String { "\(service)/\(method)" }
}
