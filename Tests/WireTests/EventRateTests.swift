import Base
import Testing

@testable import Wire

@Suite struct EventRateTests {
    @Test func `As many as allowed pass in each second`() {
        var rate = EventRate(perSecondMax: 2)
        let start = Instant(nanoseconds: 5)
        func note(_ nanoseconds: Int64) -> Bool { rate.note(at: start.advanced(byNanoseconds: nanoseconds)) }
        #expect([0, 1, 2, 999_999_999].map(note) == [true, true, false, false])
        #expect([1_000_000_000, 1_000_000_001, 1_000_000_002].map(note) == [true, true, false])
    }

    @Test func `None pass where none are allowed`() {
        var rate = EventRate(perSecondMax: 0)
        let passed = rate.note(at: Instant(nanoseconds: 0))
        #expect(!passed)
    }
}
