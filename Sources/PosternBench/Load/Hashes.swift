/// How costly a tenant's password hashes are: the first question about any figure with sign-ins in it.
enum Hashes: String, CaseIterable, CustomStringConvertible {
    /// A tenant like any other.
    case production
    /// A synthetic tenant: cheap password hashes, no throttling. Its sign-ins say nothing about a real tenant's.
    case synthetic
    /// The credential may not read the tenant.
    case unknown

    static let allCases: [Hashes] = [.production, .synthetic]

    var description: String {
        switch self {
        case .production: "password hashes: production"
        case .synthetic: "password hashes: synthetic (cheap, for load tests)"
        case .unknown: "password hashes: unknown (the key may not read the tenant)"
        }
    }
}
