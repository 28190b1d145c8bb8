import Base

/// How many places each tenant holds of those that all tenants share.
///
/// A tenant gets another place only while it holds fewer places than are free, as in the writer's queue (`WriteLines`):
/// a tenant alone gets half of them, and another tenant still finds one.
struct SharedPlaces: Sendable {
    private(set) var freeCount: Int
    /// Without tenants that hold none.
    private var counts: [Text: Int] = [:]

    init(countMax: Int) { freeCount = countMax }

    func hasRoom(for tenantID: Text) -> Bool { counts[tenantID, default: 0] < freeCount }

    /// Whether there was room for the tenant.
    mutating func take(_ tenantID: Text) -> Bool {
        guard hasRoom(for: tenantID) else { return false }
        counts[tenantID, default: 0] += 1
        freeCount -= 1
        return true
    }

    /// Frees places that the tenant holds.
    mutating func leave(_ count: Int = 1, of tenantID: Text) {
        let rest = counts[tenantID, default: 0] - count
        counts[tenantID] = rest > 0 ? rest : nil
        freeCount += count
    }
}
