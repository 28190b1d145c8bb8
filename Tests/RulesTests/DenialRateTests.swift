import Base
import Messages
import TestSupport
import Testing

@testable import Rules

@Suite struct DenialRateTests {
    private let start = Timestamp(seconds: 1_800_000_000)

    private func denial(_ operation: Text = "SignUp", _ toggle: Toggle = .disabledUserSignup) -> Denial {
        Denial(toggle: toggle, operation: operation, decisionID: "d", uid: "u")
    }

    @Test func theLimitOfASecondIsRecordedAndTheRestIsCounted() {
        var rate = DenialRate(recordedPerSecondMax: 200)
        for _ in 0..<200 { #expect(rate.admit(denial(), now: start) == .record) }
        #expect(rate.admit(denial(), now: start + .milliseconds(999)) == .counted(isFirst: true))
        #expect(rate.admit(denial(), now: start + .milliseconds(999)) == .counted(isFirst: false))
    }

    @Test func aNewSecondHasRoomAgain() {
        var rate = DenialRate(recordedPerSecondMax: 1)
        #expect(rate.admit(denial(), now: start) == .record)
        #expect(rate.admit(denial(), now: start) == .counted(isFirst: true))
        #expect(rate.admit(denial(), now: start + .seconds(1)) == .record)
        // The earlier count is still there, so nobody needs to be woken for it again.
        #expect(rate.admit(denial(), now: start + .seconds(1)) == .counted(isFirst: false))
    }

    @Test func whatWasCountedIsHandedOutOncePerToggleAndOperation() {
        var rate = DenialRate(recordedPerSecondMax: 0)
        for _ in 0..<3 { _ = rate.admit(denial("SignUp"), now: start) }
        for _ in 0..<2 { _ = rate.admit(denial("Delete", .disabledUserDeletion), now: start) }
        _ = rate.admit(denial("Unlink", .disabledUserDeletion), now: start)
        let later = start + .seconds(1)
        let taken = rate.takeSuppressed(now: later).sorted { $0.operation < $1.operation }
        #expect(taken.map(\.operation) == ["Delete", "SignUp", "Unlink"])
        #expect(taken.map(\.suppressedCount) == [2, 3, 1])
        #expect(taken.map(\.toggle) == [.disabledUserDeletion, .disabledUserSignup, .disabledUserDeletion])
        #expect(taken.allSatisfy { $0.timeMicros == later.microseconds && $0.uid.isEmpty && $0.decisionID.isEmpty })
        #expect(rate.takeSuppressed(now: later).isEmpty)
        #expect(rate.admit(denial(), now: later) == .counted(isFirst: true))
    }

    @Test func everyRefusalIsRecordedOrCountedAndNoneTwice() {
        var random = SeededRandom.printed()
        var rate = DenialRate(recordedPerSecondMax: 7)
        var now = start
        var recordedInSecond: [Int64: Int] = [:]
        var (sent, recorded, flushed): (Int64, Int64, Int64) = (0, 0, 0)
        for _ in 0..<5_000 {
            now = now + .milliseconds(random.below(60))
            if random.below(20) == 0 {
                flushed += rate.takeSuppressed(now: now).reduce(0) { $0 + $1.suppressedCount }
            }
            sent += 1
            if rate.admit(denial(random.below(2) == 0 ? "SignUp" : "SignInWithIdp"), now: now) == .record {
                recorded += 1
                recordedInSecond[now.seconds, default: 0] += 1
            }
        }
        flushed += rate.takeSuppressed(now: now).reduce(0) { $0 + $1.suppressedCount }
        #expect(recorded + flushed == sent && flushed > 0)
        #expect(recordedInSecond.values.allSatisfy { $0 <= 7 })
    }
}
