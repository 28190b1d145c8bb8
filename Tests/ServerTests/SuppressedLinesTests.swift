import Base
import Rules
import Store
import Synchronization
import Testing

@testable import Service

/// Lines that a log leaves out are counted, and `suppressed` is the key of their number wherever it stands.
@Suite struct SuppressedLinesTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])

        func add(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }

        var all: [String] { lines.withLock { $0 } }
    }

    @Test func `Failed calls`() {
        let lines = Lines()
        let log = FailureLog(log: Log(sink: { lines.add($0) }))
        let start = Instant(nanoseconds: 5_000_000_000)
        func fail(at now: Instant) {
            log.write(.usersGet, .userNotFound, Failure.userNotFound, requestID: "r", start: start, now: now)
        }
        for _ in 0..<250 { fail(at: start) }
        #expect(lines.all.count == 100)
        fail(at: start.advanced(by: .seconds(1)))
        #expect(lines.all.count == 102 && lines.all[100].contains(#""suppressed":150"#), "\(lines.all.suffix(2))")
    }

    @Test func `Trouble of the store`() {
        let lines = Lines()
        let log = Log(sink: { lines.add($0) })
        let health = HealthStatus()
        health.note(.diskFull, log: log)
        #expect(lines.all.count == 1 && lines.all[0].contains(#""suppressed":0"#), "\(lines.all)")
    }
}
