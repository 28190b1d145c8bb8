public import Messages

extension Role {
    /// The role's name, as the CLI and error metadata write it.
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
