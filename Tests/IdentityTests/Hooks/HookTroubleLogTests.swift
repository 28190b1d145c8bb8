import Base
import Rules
import Synchronization
import Testing

@testable import Identity

@Suite struct HookTroubleLogTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
        var all: [String] { lines.withLock { $0 } }
    }

    /// Each sign-in of a tenant may fail by its hook.
    @Test func aHookThatFailsAllTheTimeWritesTenLinesASecond() {
        let lines = Lines()
        let log = HookTroubleLog(Log(sink: { lines.add($0) }))
        let start = Instant(nanoseconds: 5_000_000_000)
        for _ in 0..<1_000 { log.write(.beforeSignIn, of: "acme", "it answered 500", now: start) }
        #expect(lines.all.count == 10)
        log.write(.beforeSignIn, of: "acme", "it answered 500", now: start.advanced(by: .seconds(1)))
        #expect(lines.all.count == 11 && lines.all.last?.contains("\"suppressed\":990") == true)
    }
}
