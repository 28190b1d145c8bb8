import Base
import Messages
import Rules
import Store
import TestSupport
import Testing

@testable import Identity

/// Which issuers' identities count, over every graph of rebindings between four issuers.
@Suite struct IdentityIssuersTests {
    private static let names: [Text] = ["a", "b", "c", "d"]

    private static func issuers(_ edges: [(Int, Int)], unnamed: Text = .empty) -> StoredIdentityIssuers {
        StoredIdentityIssuers(
            unnamedIssuer: unnamed,
            rebindings: edges.map { StoredRebinding(fromIssuer: names[$0.0], toIssuer: names[$0.1]) })
    }

    @Test func whatCountsIsWhatLeadsToThePresentIssuer() {
        let edges = (0..<4).flatMap { from in (0..<4).filter { $0 != from }.map { (from, $0) } }
        var cases = 0
        for set in 0..<(1 << edges.count) {
            let chosen = edges.indices.filter { set >> $0 & 1 == 1 }.map { edges[$0] }
            let issuers = Self.issuers(chosen)
            for present in 0..<4 {
                // The issuers that reach the present one along the rebindings, found in the slow and obvious way.
                var reached: Set<Int> = [present]
                for _ in 0..<4 { for (from, to) in chosen where reached.contains(to) { reached.insert(from) } }
                let counting = issuers.counting(as: Self.names[present])
                #expect(counting.first == Self.names[present] && counting.count == reached.count)
                #expect(Set(counting) == Set(reached.map { Self.names[$0] }))
                cases += 1
            }
        }
        #expect(cases == 16_384)
    }

    @Test func unnamedIdentitiesHaveOneIssuer() {
        let before = Self.issuers([(0, 1)])
        #expect(before.countsUnnamed(as: ["b"]))
        let after = Self.issuers([(0, 1)], unnamed: "a")
        #expect(after.countsUnnamed(as: after.counting(as: "b")) && after.countsUnnamed(as: after.counting(as: "a")))
        #expect(!after.countsUnnamed(as: after.counting(as: "c")))
    }

    @Test func namesOfDifferentIdentitiesHaveDifferentKeys() {
        let parts: [Text] = ["a", "ab", "b", "abc", "c", "bc"]
        var keys: Set<[UInt8]> = []
        for provider in parts {
            for raw in parts {
                for issuer in [.empty] + parts {
                    let entry = ProviderInfo(providerID: provider, rawID: raw, issuer: issuer)
                    keys.insert(IdentityName(entry).key("t").hash)
                }
            }
        }
        #expect(keys.count == 6 * 6 * 7)
    }
}
