import Base
import TestSupport
import Testing

@testable import Rules

@Suite struct EvictionTests {
    private static func entries(_ random: inout SeededRandom) -> [Eviction.Entry] {
        let tenantCount = 1 + random.below(6)
        return (0..<1 + random.below(200)).map { _ in
            // The first tenant has most of the entries.
            let tenant = random.below(3) > 0 ? 0 : random.below(tenantCount)
            return Eviction.Entry(
                tenant: UInt64(tenant), isStrict: random.below(4) == 0,
                lastAt: Timestamp(microseconds: Int64(random.below(50))))
        }
    }

    /// 2,000 random tables: a quarter of the entries goes, cheap ones first, of the tenants with most, and of these
    /// the quietest.
    @Test func aQuarterGoesByTheRules() {
        var random = SeededRandom.printed()
        for round in 0..<2_000 {
            let entries = Self.entries(&random)
            let victims = Eviction.victims(entries)
            let isGone = Set(victims)
            #expect(victims.count == max(1, entries.count / 4) && isGone.count == victims.count, "round \(round)")
            let cheap = entries.indices.filter { !entries[$0].isStrict }
            let hasCheapLeft = !isGone.isSuperset(of: cheap)
            for isStrict in [false, true] {
                let indices = entries.indices.filter { entries[$0].isStrict == isStrict }
                if isStrict && hasCheapLeft { #expect(isGone.isDisjoint(with: indices), "round \(round)") }
                let byTenant = Dictionary(grouping: indices) { entries[$0].tenant }
                let left = byTenant.mapValues { $0.filter { !isGone.contains($0) } }
                let most = left.values.map(\.count).max() ?? 0
                for (tenant, indices) in byTenant where left[tenant]?.count != indices.count {
                    let kept = left[tenant] ?? []
                    #expect(kept.count >= most - 1, "round \(round)")
                    let youngestGone = indices.filter(isGone.contains).map { entries[$0].lastAt }.max() ?? .zero
                    #expect(kept.allSatisfy { entries[$0].lastAt >= youngestGone }, "round \(round)")
                }
            }
        }
    }
}
