import Base
import Outbound
import Rules
import Synchronization

/// Why a hook failed.
public enum HookFailureCause: String, Sendable, CaseIterable {
    /// No connection to the endpoint, or no HTTP over it.
    case unreachable
    /// No answer in time.
    case slow
    /// A status of failure, or a redirection.
    case status
    /// A status of success with a body that cannot be used, or that did not come as a whole.
    case answer

    init(_ error: OutboundError) {
        switch error {
        case .timedOut: self = .slow
        case .redirected: self = .status
        case .tooLarge: self = .answer
        case .malformedRequest, .addressNotAllowed, .cannotResolve, .cannotConnect, .untrusted, .broken, .overloaded:
            self = .unreachable
        }
    }
}

/// A failure of a hook. `reason` says in words what happened.
struct HookTrouble: Error {
    let cause: HookFailureCause
    let reason: String

    /// Whether the hook may have refused the sign-in. It has decided something that cannot be read, and an end user may
    /// be the reason why: a hook's message often repeats what the user typed.
    var mayBeRefusal: Bool { cause == .answer }
}

/// How often hooks failed, by the cause, and the log lines about it: ten a second at most, because each sign-in of a
/// tenant may fail so.
public final class HookFailures: Sendable {
    private let log: Log
    private let rate = Mutex(LineRate(linesPerSecondMax: 10))
    private let counters = HookFailureCause.allCases.map { (cause: $0, counter: Counter()) }

    init(_ log: Log) { self.log = log }

    /// All causes with their counts.
    public var counts: [(cause: HookFailureCause, count: UInt64)] { counters.map { ($0.cause, $0.counter.value) } }

    /// `isRefused`: whether the failure refuses the sign-in.
    func note(_ trouble: HookTrouble, of point: HookPoint, tenantID: Text, isRefused: Bool, now: Instant) {
        for entry in counters where entry.cause == trouble.cause { entry.counter.add() }
        guard let suppressedCount = rate.withLock({ $0.admit(now: now) }) else { return }
        log.warning(
            "a hook failed",
            [
                "tenant": .text(tenantID.string), "hook": .text(point.rawValue), "cause": .text(trouble.cause.rawValue),
                "error": .text(trouble.reason), "sign_in": .text(isRefused ? "refused" : "goes on"),
                "suppressed": .integer(suppressedCount),
            ])
    }
}
