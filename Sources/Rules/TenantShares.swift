import Base

/// The places of a bounded table whose entries belong to tenants. Pure.
///
/// While there is room, a tenant takes as many places as it likes. When the table is full, the tenant with the most
/// entries gives one up for a tenant that has at least two fewer: no tenant keeps another one out.
public struct TenantShares<Tenant: Hashable & Sendable>: Sendable {
    public enum Verdict: Equatable, Sendable {
        case hasRoom
        /// An entry of this tenant has to leave first.
        case takes(from: Tenant)
        case refused
    }

    private let countMax: Int
    private var counts: [Tenant: Int] = [:]
    public private(set) var count = 0

    public init(countMax: Int) { self.countMax = countMax }

    public func count(of tenant: Tenant) -> Int { counts[tenant, default: 0] }

    /// Whether an entry of the tenant may enter.
    public func verdict(for tenant: Tenant) -> Verdict {
        if count < countMax { return .hasRoom }
        // Only a full table is looked through, and it has few tenants unless many attack together.
        guard let most = counts.max(by: { $0.value < $1.value }), most.value > count(of: tenant) + 1 else {
            return .refused
        }
        return .takes(from: most.key)
    }

    public mutating func entered(_ tenant: Tenant) {
        counts[tenant, default: 0] += 1
        count += 1
    }

    public mutating func left(_ tenant: Tenant) {
        guard let former = counts[tenant] else { return }
        counts[tenant] = former > 1 ? former - 1 : nil
        count -= 1
    }
}
