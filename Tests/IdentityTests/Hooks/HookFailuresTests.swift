import Base
import Rules
import Synchronization
import Testing

@testable import Identity

@Suite struct HookFailuresTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
        var all: [String] { lines.withLock { $0 } }
    }

    /// Each sign-in of a tenant may fail by its hook.
    @Test func aHookThatFailsAllTheTimeWritesTenLinesASecond() {
        let lines = Lines()
        let failures = HookFailures(Log(sink: { lines.add($0) }))
        let start = Instant(nanoseconds: 5_000_000_000)
        func fail(_ cause: HookFailureCause, isRefused: Bool, at now: Instant) {
            let trouble = HookTrouble(cause: cause, reason: "it answered 500")
            failures.note(trouble, of: .beforeSignIn, tenantID: "acme", isRefused: isRefused, now: now)
        }
        for _ in 0..<1_000 { fail(.status, isRefused: false, at: start) }
        #expect(lines.all.count == 10)
        fail(.answer, isRefused: true, at: start.advanced(by: .seconds(1)))
        #expect(lines.all.count == 11)
        let last = lines.all.last ?? ""
        for part in [#""suppressed":990"#, #""cause":"answer""#, #""sign_in":"refused""#] {
            #expect(last.contains(part), "\(part)")
        }
        #expect(lines.all.first?.contains(#""sign_in":"goes on""#) == true)
        // Each failure is counted, also one without a line.
        let counts = failures.counts.map { "\($0.cause.rawValue) \($0.count)" }
        #expect(counts == ["unreachable 0", "slow 0", "status 1000", "answer 1"])
    }
}
