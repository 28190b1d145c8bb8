public import Base
public import Messages

/// Who calls: an API key with a role and a scope. Immutable.
public final class Caller: Sendable {
    public let id: Text
    public let role: Role
    /// Nil: all tenants. Otherwise this one only; "" is the default pool.
    public let tenantID: Text?
    /// Whether `end_user_ip` in its requests is believed.
    public let trustsEndUserIP: Bool

    public init(_ key: ApiKey) {
        self.id = key.apiKeyID
        self.role = key.role
        self.trustsEndUserIP = key.trustedEndUserIP
        if case .tenantID(let tenantID) = key.scope?.tenants { self.tenantID = tenantID } else { self.tenantID = nil }
    }

    /// A role includes the lower ones.
    public func has(_ role: Role) -> Bool { self.role.rawValue >= role.rawValue }

    /// The tenant a request means: the one it names, else the caller's own, else the default pool. Throws
    /// INSUFFICIENT_PERMISSION outside of the caller's scope.
    public func tenant(requested: Text) throws(Failure) -> Text {
        guard let tenantID else { return requested }
        guard requested.isEmpty || requested == tenantID else {
            throw Failure(
                .permissionDenied, "INSUFFICIENT_PERMISSION",
                "This credential is bound to another tenant; use one of tenant \"\(requested)\" or of all tenants.")
        }
        return tenantID
    }

    /// Throws INSUFFICIENT_PERMISSION below `role`.
    public func require(_ role: Role) throws(Failure) {
        guard has(role) else {
            throw Failure(
                .permissionDenied, "INSUFFICIENT_PERMISSION",
                "This call needs the role \(role.name); the credential has \(self.role.name).",
                metadata: [Failure.Entry("required_role", role.name), Failure.Entry("role", self.role.name)])
        }
    }
}

extension Role {
    /// As the CLI and error metadata write it.
    public var name: String {
        switch self {
        case .unspecified: "none"
        case .any: "any"
        case .verifier: "verifier"
        case .app: "app"
        case .tenantAdmin: "tenant-admin"
        case .projectAdmin: "project-admin"
        }
    }
}

extension Failure {
    /// The caller's own credential is missing, unknown or revoked; says nothing about end users.
    public static let callerUnauthenticated = Failure(
        .unauthenticated, "CALLER_UNAUTHENTICATED",
        "Send a valid API key as metadata `authorization: Bearer pk_…`.")
}
