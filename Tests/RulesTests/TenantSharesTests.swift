import Base
import Rules
import Testing

@Suite struct TenantSharesTests {
    @Test func `A full table takes from the tenant that has most, until nobody has much more than another`() {
        var shares = TenantShares<Text>(countMax: 6)
        for _ in 0..<6 {
            #expect(shares.verdict(for: "a") == .hasRoom)
            shares.entered("a")
        }
        #expect(shares.verdict(for: "a") == .refused)
        for tenant in ["b", "c", "b", "c"] as [Text] {
            #expect(shares.verdict(for: tenant) == .takes(from: "a"))
            shares.left("a")
            shares.entered(tenant)
        }
        for tenant in ["a", "b", "c"] as [Text] {
            #expect(shares.count(of: tenant) == 2 && shares.verdict(for: tenant) == .refused)
        }
        // Any of them gives one up for a fourth, and none for a fifth that would be the third with one entry.
        guard case .takes(let from) = shares.verdict(for: "d") else {
            Issue.record("there is no place for a fourth tenant")
            return
        }
        shares.left(from)
        shares.entered("d")
        #expect(shares.count == 6)
        shares.left("nobody")
        #expect(shares.count == 6)
    }

    @Test func `A table without places refuses everybody`() {
        #expect(TenantShares<Text>(countMax: 0).verdict(for: "a") == .refused)
    }
}
