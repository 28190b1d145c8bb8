import Base
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
        (isConnected: true, seen: 200.0, now: 204.9, isBehind: false),
        (isConnected: true, seen: 200.0, now: 205.0, isBehind: true),
        (isConnected: false, seen: 200.0, now: 259.9, isBehind: false),
        (isConnected: false, seen: 200.0, now: 260.0, isBehind: true),
        // For a node that was never at the journal's end the time counts from its start.
        (isConnected: true, seen: nil, now: 104.9, isBehind: false),
        (isConnected: true, seen: nil, now: 105.0, isBehind: true),
        (isConnected: false, seen: nil, now: 159.9, isBehind: false),
        (isConnected: false, seen: nil, now: 160.0, isBehind: true),
    ])
    func `A node serves for a while without the engine, and not behind it`(
        isConnected: Bool, seen: Double?, now: Double, isBehind: Bool
    ) {
        let found = Self.health.isBehind(
            isConnected: isConnected, endSeenAt: seen.map(Self.at), now: Self.at(now))
        #expect(found == isBehind)
    }

    @Test func `A node that may serve without the engine does, once it knew what to serve`() {
        var limits = JournalLimits()
        limits.whenBehind = .serve
        let health = JournalHealth(startedAt: Self.at(100), limits: limits)
        #expect(!health.isBehind(isConnected: false, endSeenAt: Self.at(200), now: Self.at(9_000)))
        #expect(health.isBehind(isConnected: false, endSeenAt: nil, now: Self.at(9_000)))
        #expect(health.isBehind(isConnected: true, endSeenAt: Self.at(200), now: Self.at(9_000)))
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
}
