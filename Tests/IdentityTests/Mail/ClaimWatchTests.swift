import Base
import Testing

@testable import Identity

/// When another node's claim on a message is over.
@Suite struct ClaimWatchTests {
    private static let node = [UInt8](repeating: 1, count: 16)
    private static let otherNode = [UInt8](repeating: 2, count: 16)

    private func key(_ message: Text, due seconds: Int64 = 5) -> OutboxDueKey {
        OutboxDueKey(Timestamp(seconds: seconds), "acme", message)
    }

    /// Looks at the claims of `keys`, `seconds` after the first look; returns the messages whose claims are over.
    private func over(
        _ watch: inout ClaimWatch, _ keys: [OutboxDueKey], of claimant: [UInt8] = node, after seconds: Int64
    ) -> [Text] {
        var over: [Text] = []
        let now = Timestamp(seconds: 1_000 + seconds)
        for key in keys where watch.isOver(key, of: claimant, after: .minutes(2), now: now) {
            over.append(key.messageID)
        }
        return over
    }

    @Test func aClaimIsOverWhenItWasSeenUnchangedForItsTime() {
        var watch = ClaimWatch()
        #expect(over(&watch, [key("m1")], after: 0) == [])
        #expect(over(&watch, [key("m1"), key("m2")], after: 119) == [])
        #expect(over(&watch, [key("m1"), key("m2")], after: 120) == ["m1"])
        #expect(over(&watch, [key("m1"), key("m2")], after: 239) == ["m1", "m2"])
    }

    @Test func aClaimThatIsNotTheSameBeginsAnew() {
        var watch = ClaimWatch()
        #expect(over(&watch, [key("m1"), key("m2")], after: 0) == [])
        // The node renewed its claim on one message, and another node has the other.
        #expect(over(&watch, [key("m1", due: 6)], after: 120) == [])
        #expect(over(&watch, [key("m2")], of: Self.otherNode, after: 120) == [])
        #expect(watch.claimant(of: key("m2")) == Self.otherNode)
        #expect(over(&watch, [key("m1", due: 6)], after: 240) == ["m1"])
        #expect(over(&watch, [key("m2")], of: Self.otherNode, after: 240) == ["m2"])
    }

    @Test func aMessageThatCannotBeReadIsLeftToOthersForATime() {
        var watch = ClaimWatch()
        let begin = Timestamp(seconds: 1_000)
        #expect(!watch.isLeft(key("m1"), for: .minutes(10), now: begin))
        let isNews = watch.noteUnreadable(key("m1"), now: begin)
        let isNewsAgain = watch.noteUnreadable(key("m1"), now: begin + .minutes(5))
        #expect(isNews && !isNewsAgain)
        #expect(watch.isLeft(key("m1"), for: .minutes(10), now: begin + .minutes(9)))
        #expect(!watch.isLeft(key("m1"), for: .minutes(10), now: begin + .minutes(10)))
        #expect(watch.claimant(of: key("m1")) == ClaimWatch.unreadable)
        // Another node had the message meanwhile, and put it off.
        #expect(!watch.isLeft(key("m1", due: 6), for: .minutes(10), now: begin))
        // A claim is no message that cannot be read.
        #expect(over(&watch, [key("m2")], after: 0) == [])
        #expect(!watch.isLeft(key("m2"), for: .minutes(10), now: begin))
    }

    @Test func aClaimThatIsGoneIsForgotten() {
        var watch = ClaimWatch()
        #expect(over(&watch, [key("m1"), key("m2")], after: 0) == [])
        watch.forget { $0 == key("m1") }
        #expect(watch.claimant(of: key("m1")) == nil)
        #expect(watch.claimant(of: key("m2")) == Self.node)
        #expect(over(&watch, [key("m1"), key("m2")], after: 120) == ["m2"])
    }
}
