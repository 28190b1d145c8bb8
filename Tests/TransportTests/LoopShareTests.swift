import Base
import Reactor
import Testing

@testable import Transport

/// What one turn of a loop spends on handshakes, and when a connection looks at the clock.
@Suite struct LoopShareTests {
    /// How many handshakes go on in one turn, if each takes as long as `each`.
    private static func handshakeCount(_ share: LoopShare, each: Duration) -> Int64 {
        let (count, isDone) = (Gauge(), Base.Semaphore())
        share.loop.run {
            while count.value < 1_000, share.takeHandshakeTurn() {
                count.add(1)
                let began = Instant(nanoseconds: 0)
                share.noteHandshake(from: began, to: began.advanced(by: each), line: "(stranger)")
            }
            isDone.signal()
        }
        isDone.wait()
        return count.value
    }

    @Test func `Handshakes go on until they have taken a millisecond, and one in each turn`() {
        let loop = EventLoop(name: "handshakes")
        loop.start()
        defer {
            loop.stop()
            loop.join()
        }
        let limits = Limits()
        let share = LoopShare(
            of: loop, number: 0, memory: ConnectionMemory(limits: limits, loopCount: 1), limits: SharedLimits(limits))
        #expect(limits.tlsHandshakeTimePerTurnMax == .milliseconds(1))
        // An RSA key of 4096 bits, one of 2048 bits, P-256, and bytes that are only a part of a message.
        for (each, count) in [(5_000, 1), (5_000, 1), (750, 2), (100, 10), (5_000, 1), (1, 1_000)] as [(Int64, Int64)] {
            let went = Self.handshakeCount(share, each: .microseconds(each))
            #expect(went == count, "\(each) µs each")
        }
    }

    @Test func `Short frames have the clock read for every fourth`() {
        var looks = DecodingLooks(inputByteCount: 100_000, outputByteCount: 0)
        let due = (1...12).map { looks.isDue(inputByteCount: 100_000 - 100 * $0, outputByteCount: 300 * $0) }
        #expect(due == [false, false, false, true, false, false, false, true, false, false, false, true])
    }

    @Test func `A long request, and a long answer, have the clock read at once`() {
        var looks = DecodingLooks(inputByteCount: 100_000, outputByteCount: 500)
        let sizes = [(98_976, 500), (98_975, 500), (98_900, 8_692), (98_800, 8_693), (98_700, 8_800), (0, 8_800)]
        let due = sizes.map { looks.isDue(inputByteCount: $0.0, outputByteCount: $0.1) }
        #expect(due == [false, true, false, true, false, true])
    }
}
