import Base
import Rules
import Synchronization

/// The log lines of failed hooks: ten a second at most, because each sign-in of a tenant may fail so.
final class HookTroubleLog: Sendable {
    private let log: Log
    private let rate = Mutex(LineRate(linesPerSecondMax: 10))

    init(_ log: Log) { self.log = log }

    func write(_ point: HookPoint, of tenantID: Text, _ reason: String, now: Instant) {
        guard let suppressedCount = rate.withLock({ $0.admit(now: now) }) else { return }
        log.warning(
            "a hook failed",
            [
                "tenant": .text(tenantID.string), "hook": .text(point.rawValue), "error": .text(reason),
                "suppressed": .integer(suppressedCount),
            ])
    }
}
