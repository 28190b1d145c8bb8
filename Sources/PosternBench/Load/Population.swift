import Base

/// A session that `seed` started, for `verify`, `lookup` and `refresh`.
struct Session: Equatable, Sendable {
    /// The number of its tenant.
    var tenant = 0
    var idToken: [UInt8]
    /// The newest refresh token: an older one would end the session.
    var refreshToken: [UInt8]
}

/// The data that `seed` put into its tenants, as the state file remembers it.
struct Population: Equatable, Sendable {
    static let tenantsMax = 10_000
    private static let digitCount = 5
    /// Stands in a tenant's id where its number goes; no id has it.
    static let tenantPlaceholder = [UInt8](repeating: UInt8(ascii: "~"), count: digitCount)

    /// The id of the only tenant, or how the ids of several begin.
    var tenantName: Text
    var tenantCount = 1
    /// How many more users the first tenants have than the others, and so how much more of the load: `Zipf`'s exponent.
    var zipf = 0.0
    /// The counts of all tenants together.
    var userCount = 0
    var passwordUserCount = 0
    var sessions: [Session] = []
    /// The default seed of the random choices of `run`.
    var seed = 1
    /// The server that the data was put into; nil without a state file.
    var origin: Origin?
    /// The progress of `seed`.
    var done = Progress()

    /// The marks that tell a server from another: the project, and when the first tenant was made.
    struct Origin: Equatable, Sendable {
        var projectID: Text
        /// 0: the credential may not read the tenant.
        var tenantCreatedAt: Int64
        var hashes: Hashes

        /// Whether it can be the same server with the same tenant.
        func matches(_ other: Origin) -> Bool {
            projectID == other.projectID
                && (tenantCreatedAt == other.tenantCreatedAt || tenantCreatedAt == 0 || other.tenantCreatedAt == 0)
        }
    }

    /// The counts of what exists already.
    struct Progress: Equatable, Sendable {
        var users = 0
        var passwordUsers = 0
        /// When the first session began, in microseconds since 1970.
        var sessionsBeganAt: Int64 = 0
        var isComplete = false
    }

    init(tenantID: Text) { tenantName = tenantID }

    /// The count for a choice among all users. Without users, the count of the tenants.
    var userTotal: Int { userCount > 0 ? userCount : tenantCount }

    /// The id of the first tenant.
    var tenantID: Text { tenantID(0) }

    func tenantID(_ number: Int) -> Text {
        guard tenantCount > 1 else { return tenantName }
        let digits = String(number)
        return Text(
            "\(tenantName)-" + String(repeating: "0", count: max(0, Self.digitCount - digits.count)) + digits)
    }

    /// The id of a tenant with the placeholder instead of a number.
    var templateTenantID: Text {
        guard tenantCount > 1 else { return tenantName }
        return Text("\(tenantName)-" + String(decoding: Self.tenantPlaceholder, as: UTF8.self))
    }

    /// Writes a tenant's number as the digits of its id.
    static func writeDigits(ofTenant number: Int, to target: UnsafeMutableRawPointer) {
        var rest = number
        for offset in stride(from: digitCount - 1, through: 0, by: -1) {
            target.storeBytes(of: UInt8(ascii: "0") + UInt8(rest % 10), toByteOffset: offset, as: UInt8.self)
            rest /= 10
        }
    }

    /// The part that is in the first tenant.
    var ofFirstTenant: Population {
        guard tenantCount > 1 else { return self }
        var first = Population(tenantID: tenantID)
        first.userCount = TenantShares(of: userCount, in: self).count(0)
        first.passwordUserCount = TenantShares(of: passwordUserCount, in: self).count(0)
        first.sessions = sessions.filter { $0.tenant == 0 }
        first.origin = origin
        return first
    }
}

/// How many of a total each tenant has: by Zipf's law, so that a choice among all users is one among tenants, too.
struct TenantShares: Equatable, Sendable {
    /// The index of each tenant's first item, and after the last one the total.
    private let starts: [Int]

    init(of total: Int, in population: Population) {
        self.init(of: total, among: population.tenantCount, zipf: population.zipf)
    }

    init(of total: Int, among tenantCount: Int, zipf: Double) {
        let weights = (0..<max(1, tenantCount)).map { Zipf.weight(of: $0, exponent: zipf) }
        let all = weights.reduce(0, +)
        var sum = 0.0
        // Each end is rounded, so that all parts together are the whole.
        let ends = weights.map { weight in
            sum += weight
            return min(total, Int((Double(total) * sum / all).rounded()))
        }
        starts = [0] + ends.dropLast() + [total]
    }

    func count(_ tenant: Int) -> Int { starts[tenant + 1] - starts[tenant] }

    /// The tenant of item `index`, and the item's number within the tenant.
    func place(_ index: Int) -> (tenant: Int, number: Int) {
        guard starts.count > 2 else { return (0, index) }
        var (low, high) = (0, starts.count - 1)
        // The last tenant that begins at `index` or before: of those that begin there, it is the one that is not empty.
        while high - low > 1 {
            let middle = (low + high) / 2
            if starts[middle] <= index { low = middle } else { high = middle }
        }
        return (low, index - starts[low])
    }
}
