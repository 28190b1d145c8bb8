import Base
import Testing

@testable import PosternClient

/// SplitMix64 with a fixed seed.
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64 = 42

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

@Suite struct RetryPolicyTests {
    @Test func `Delays lie below a bound that doubles up to its maximum`() {
        var generator = SeededGenerator()
        let policy = RetryPolicy()
        for (attempt, bound) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (50, 1_000)] {
            let delays = (0..<200).map { _ in policy.delay(afterAttempt: attempt, using: &generator) }
            #expect(delays.allSatisfy { .zero <= $0 && $0 <= .milliseconds(bound) })
            #expect(delays.contains { $0 > .milliseconds(bound / 2) })
        }
    }

    @Test func `Connecting again is left to the channel's back-off`() {
        let policy = RetryPolicy()
        #expect(policy.isWorthRetrying(.connectionLost("")))
        #expect(!policy.isWorthRetrying(.connectionFailed("")))
        #expect(!policy.isWorthRetrying(.channelClosed))
        #expect(!policy.isWorthRetrying(.deadlinePassed))
    }

    @Test func `When half of the tokens are gone nothing is repeated until calls succeed again`() {
        var budget = RetryBudget()
        let answers = (0..<6).map { _ in budget.failed() }
        #expect(answers == [true, true, true, true, false, false])
        for _ in 0..<30 { budget.succeeded() }
        let isWorthTrying = budget.failed()
        #expect(isWorthTrying)
    }

    @Test func `An unreachable server is left alone for longer each time`() {
        var generator = SeededGenerator()
        var backoff = ReconnectBackoff()
        var expected = 1.0
        for _ in 0..<20 {
            let delay = backoff.failed(using: &generator)
            #expect(.seconds(expected * 0.799) <= delay && delay <= .seconds(expected * 1.201))
            expected = min(expected * 1.6, 120)
        }
        backoff.succeeded()
        let delay = backoff.failed(using: &generator)
        #expect(delay <= .seconds(1.2))
    }
}
