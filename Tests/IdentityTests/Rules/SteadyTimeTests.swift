import Base
import Testing

@testable import Identity

@Suite struct SteadyTimeTests {
    private let wall = Timestamp(seconds: 1_800_000_000)
    private let monotonic = Instant(nanoseconds: 5_000_000_000)

    /// Outside of `#expect`, which takes no mutating calls.
    private func isSteady(_ steady: inout SteadyTime, wall: Duration, monotonic: Duration) -> Bool {
        steady.isSteady(wall: self.wall + wall, monotonic: self.monotonic.advanced(by: monotonic))
    }

    @Test func `A clock is believed after an hour in which it went like the monotonic one`() {
        var steady = SteadyTime()
        for minute in Int64(0)..<60 {
            let answer = isSteady(&steady, wall: .minutes(minute), monotonic: .minutes(minute))
            #expect(!answer)
        }
        let answer = isSteady(&steady, wall: .hours(1), monotonic: .hours(1))
        #expect(answer)
    }

    @Test(arguments: [Duration.days(3_650), .minutes(6), .zero - .minutes(6), .zero - .days(400)])
    func `A jump has to last an hour, forwards and backwards`(jump: Duration) {
        var steady = SteadyTime()
        _ = isSteady(&steady, wall: .zero, monotonic: .zero)
        let jumped = Duration.hours(2) + jump
        let answers = [
            isSteady(&steady, wall: .hours(2), monotonic: .hours(2)),
            isSteady(&steady, wall: jumped, monotonic: .hours(2)),
            isSteady(&steady, wall: jumped + .minutes(59), monotonic: .minutes(179)),
            isSteady(&steady, wall: jumped + .hours(1), monotonic: .hours(3)),
        ]
        #expect(answers == [true, false, false, true])
    }
}
