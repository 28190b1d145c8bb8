import Base
import Testing

@testable import PosternVerifier

@Suite struct FeedPausesTests {
    private static let pauses = [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]

    @Test(arguments: [Duration?.none, .zero, .seconds(4)])
    func `Streams that end soon come ever less often`(life: Duration?) {
        var pauses = FeedPauses()
        var now = Instant(nanoseconds: 0)
        for expected in Self.pauses {
            if let life {
                pauses.heard(at: now)
                now = now.advanced(by: life)
                pauses.heard(at: now)
            }
            #expect(pauses.ended(at: now) == .milliseconds(expected))
        }
    }

    @Test func `A stream that lived for a while begins anew, and silence before its first message does not count`() {
        var pauses = FeedPauses()
        let now = Instant(nanoseconds: 0)
        let later = now.advanced(by: FeedPauses.longest)
        for _ in 0..<5 { _ = pauses.ended(at: now) }
        pauses.heard(at: now)
        #expect(pauses.ended(at: later) == .milliseconds(100))
        #expect(pauses.ended(at: later.advanced(by: .hours(1))) == .milliseconds(200))
    }
}
