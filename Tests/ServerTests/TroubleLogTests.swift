import Base
import Store
import Testing

@testable import Service

/// The log lines about a store that comes into trouble, and how often they come.
@Suite struct TroubleLogTests {
    private static func at(_ seconds: Double) -> Instant {
        Instant(nanoseconds: 0).advanced(by: .milliseconds(Int64(seconds * 1_000)))
    }

    @Test func `Changes with time between them are each said at once`() {
        var log = TroubleLog()
        #expect(log.changed(to: .diskFull, now: Self.at(0)) == TroubleLog.Line(trouble: .diskFull, suppressedCount: 0))
        #expect(log.due(now: Self.at(60)) == nil, "all is said")
        #expect(log.changed(to: nil, now: Self.at(60)) == TroubleLog.Line(trouble: nil, suppressedCount: 0))
    }

    @Test func `A change soon after a line is said later, as it is by then`() {
        var log = TroubleLog()
        _ = log.changed(to: .diskFull, now: Self.at(0))
        #expect(log.changed(to: nil, now: Self.at(1)) == nil)
        #expect(log.due(now: Self.at(9.9)) == nil)
        #expect(log.due(now: Self.at(10)) == TroubleLog.Line(trouble: nil, suppressedCount: 1))
        #expect(log.due(now: Self.at(1_000)) == nil)
    }

    @Test func `A store that comes and goes twenty times a second gets a handful of lines in an hour`() {
        var log = TroubleLog()
        var lines: [TroubleLog.Line] = []
        for step in 0..<20 * 3_600 {
            let now = Self.at(Double(step) / 20)
            if let line = log.changed(to: step % 2 == 0 ? .diskFull : nil, now: now) { lines.append(line) }
            if step % 20 == 10, let line = log.due(now: now) { lines.append(line) }
        }
        #expect(lines.count == 11, "after 0, 10, 30, 70, … seconds")
        #expect(lines.reduce(0) { $0 + $1.suppressedCount } + Int64(lines.count) >= 19 * 3_000)
        // After a calm time a change is logged at once.
        #expect(log.due(now: Self.at(4_300)) != nil)
        #expect(log.changed(to: .mapFull, now: Self.at(6_000))?.trouble == .mapFull)
        #expect(log.changed(to: nil, now: Self.at(6_010))?.trouble == Optional.some(nil))
    }

    @Test func `A disk that does not answer is the trouble of /healthz until it answers`() {
        let health = HealthStatus()
        health.note(isDiskSilent: true, log: .silent)
        #expect(health.trouble == .diskSilent)
        health.note(.diskFull, log: .silent)
        #expect(health.trouble == .diskSilent)
        health.note(isDiskSilent: false, log: .silent)
        #expect(health.trouble == .diskFull)
        health.note(nil, log: .silent)
        #expect(health.trouble == nil)
    }
}
