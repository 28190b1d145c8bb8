import Base
import Testing

@testable import Store

@Suite struct SpaceRulesTests {
    private let rules = SpaceRules(Limits(), pageByteCount: 4_096)

    @Test(arguments: [
        (reached: 100, limit: 1 << 24, expected: 512), (100_000, 1 << 24, 6_250), (10_000_000, 1 << 24, 16_384),
        (100, 256, 32), (2_000, 2_048, 256), (0, 0, 0),
    ])
    func theReserveGrowsWithTheStoreWithinBounds(_ reached: Int, _ limit: Int, _ expected: Int) {
        #expect(rules.reserve(reached: reached, limit: limit) == expected)
    }

    @Test func eachPurposeLeavesLessFree() {
        #expect(rules.floor(.growth, reserve: 512) == 512)
        #expect(rules.floor(.session, reserve: 512) == 256)
        #expect(rules.floor(.relief, reserve: 512) == 64)
        #expect(rules.floor(.removal, reserve: 512) == 0)
    }

    @Test func growthTargetsFallAndEndAtWhatIsNeeded() {
        #expect(
            rules.growthTargets(reached: 1_000, reserve: 512, limit: 1 << 20) == [
                1_768, 1_512, 1_256, 1_128, 1_064, 1_000,
            ])
        #expect(rules.growthTargets(reached: 1_000, reserve: 512, limit: 1_024) == [1_024, 1_000])
    }
}
