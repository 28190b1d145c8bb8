import Base
import Crypto
import Testing

@testable import Rules

@Suite struct SessionIDTests {
    /// RFC 9562, appendix A.6: 017F22E2-79B0-7CC3-98C4-DC0C0C07398F was made on 2022-02-22 at 19:22:22 UTC.
    @Test func anIDBeginsWithItsTime() {
        let time = Timestamp(microseconds: 1_645_557_742_000_999)
        for _ in 0..<100 {
            let id = SessionID.make(at: time, random: .system)
            #expect(id.count == 16)
            #expect(Array(id[..<6]) == [0x01, 0x7F, 0x22, 0xE2, 0x79, 0xB0])
            #expect(id[6] >> 4 == 7 && id[8] >> 6 == 2)
        }
    }

    @Test func laterIDsAreGreater() {
        let ids = (0..<100).map { SessionID.make(at: Timestamp(microseconds: $0 * 1_000), random: .system) }
        #expect(zip(ids, ids.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
    }

    @Test func idsOfOneMomentDiffer() {
        let ids = Set((0..<1_000).map { _ in SessionID.make(at: .zero, random: .system) })
        #expect(ids.count == 1_000)
    }

    /// A clock that was never set makes poor ids, but no crash.
    @Test(arguments: [Int64.min, -1, 0, .max]) func anyClockWillDo(_ microseconds: Int64) {
        #expect(SessionID.make(at: Timestamp(microseconds: microseconds), random: .system).count == 16)
    }
}
