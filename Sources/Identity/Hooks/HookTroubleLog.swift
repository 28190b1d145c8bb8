import Base
import Outbound
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

extension OutboundError {
    /// The reason in the log line of a hook that failed.
    var troubleOfHook: String {
        switch self {
        case .malformedRequest: "its URL may not be requested"
        case .addressNotAllowed: "its address is not public, which needs allow_private_addresses"
        case .cannotResolve: "its name cannot be resolved"
        case .cannotConnect: "no connection to it"
        case .timedOut: "it took too long"
        case .untrusted: "it has no TLS, or its certificate is not valid"
        case .tooLarge: "its answer is too long"
        case .redirected: "it answered with a redirection, which is never followed"
        case .broken: "the connection broke, or its answer was no HTTP"
        case .overloaded: "too many requests of the tenant are on their way"
        }
    }
}
