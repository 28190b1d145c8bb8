import Base
import Store
import Testing

@testable import Service

/// When a node of a cluster serves.
@Suite struct JournalHealthTests {
    private static func at(_ seconds: Double) -> Instant {
        Instant(nanoseconds: 0).advanced(by: .milliseconds(Int64(seconds * 1_000)))
    }

    private static let health = {
        var limits = JournalLimits()
        (limits.behindMax, limits.staleAfter) = (.seconds(5), .seconds(60))
        return JournalHealth(startedAt: at(100), limits: limits)
    }()

    @Test(arguments: [
        (isConfirmed: true, behindCount: 1, seen: 200.0, now: 204.9, isBehind: false),
        (isConfirmed: true, behindCount: 1, seen: 200.0, now: 205.0, isBehind: true),
        // The engine has a connection and answers nothing.
        (isConfirmed: true, behindCount: 0, seen: 200.0, now: 259.9, isBehind: false),
        (isConfirmed: true, behindCount: 0, seen: 200.0, now: 260.0, isBehind: true),
        // There is no connection, or the engine takes no entry on it that would confirm the entries that it shows.
        (isConfirmed: false, behindCount: 0, seen: 200.0, now: 259.9, isBehind: false),
        (isConfirmed: false, behindCount: 0, seen: 200.0, now: 260.0, isBehind: true),
        (isConfirmed: false, behindCount: 1, seen: 200.0, now: 259.9, isBehind: false),
        (isConfirmed: false, behindCount: 1, seen: 200.0, now: 260.0, isBehind: true),
        // For a node that was never at the journal's end the time counts from its start.
        (isConfirmed: true, behindCount: 1, seen: nil, now: 104.9, isBehind: false),
        (isConfirmed: true, behindCount: 1, seen: nil, now: 105.0, isBehind: true),
        (isConfirmed: false, behindCount: 0, seen: nil, now: 159.9, isBehind: false),
        (isConfirmed: false, behindCount: 0, seen: nil, now: 160.0, isBehind: true),
    ])
    func `A node serves for a while without the engine, and not behind it`(
        isConfirmed: Bool, behindCount: Int, seen: Double?, now: Double, isBehind: Bool
    ) {
        let found = Self.health.isBehind(
            isConfirmed: isConfirmed, behindCount: UInt64(behindCount), endSeenAt: seen.map(Self.at),
            now: Self.at(now))
        #expect(found == isBehind)
    }

    @Test func `A node that may serve without the engine does, once it knew what to serve`() {
        var limits = JournalLimits()
        limits.whenBehind = .serve
        let health = JournalHealth(startedAt: Self.at(100), limits: limits)
        func isBehind(_ isConfirmed: Bool, _ behindCount: UInt64, _ endSeenAt: Instant?) -> Bool {
            health.isBehind(
                isConfirmed: isConfirmed, behindCount: behindCount, endSeenAt: endSeenAt, now: Self.at(9_000))
        }
        #expect(!isBehind(false, 0, Self.at(200)) && !isBehind(false, 1, Self.at(200)))
        #expect(isBehind(false, 0, nil))
        // An engine that answers nothing is as good as away.
        #expect(!isBehind(true, 0, Self.at(200)))
        #expect(isBehind(true, 1, Self.at(200)))
    }

    @Test func `Health follows the start and the journal`() {
        let health = HealthStatus()
        health.set(isBehind: false)
        #expect(!health.isServing, "not started")
        health.set(isServing: true)
        #expect(health.isServing)
        health.set(isBehind: true)
        #expect(!health.isServing)
        health.set(isServing: false)
        health.set(isBehind: false)
        #expect(!health.isServing, "stopped")
    }

    @Test func `A node that leaves snapshots to others is degraded, and says a worse trouble first`() {
        let health = HealthStatus()
        health.set(isServing: true)
        health.note(holdsSnapshotsBack: true)
        #expect(health.isServing && health.trouble == .snapshotsHeldBack)
        health.note(.diskFull, log: .silent)
        #expect(health.trouble == .diskFull)
        health.note(nil, log: .silent)
        #expect(health.trouble == .snapshotsHeldBack)
        health.note(holdsSnapshotsBack: false)
        #expect(health.trouble == nil)
    }
}
