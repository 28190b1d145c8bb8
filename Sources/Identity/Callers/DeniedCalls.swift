public import Base
import Messages
public import Rules
import Store
import Synchronization

/// Writes events of calls that were refused because their caller may not make them: a credential that is used beyond
/// its role is a mistake or a theft, and its owner wants to know.
///
/// An event stands in the log of the tenant that the credential is bound to, or in the project's. Any thread.
public final class DeniedCalls: Sendable {
    /// A refused call.
    public struct Call: Sendable {
        let caller: DeniedCallRate.Caller
        let detail: String
        let requestID: Text

        /// `method` is a full name. The event also tells the requested tenant, if the failure names it.
        public init(by caller: Caller, of method: String, _ failure: Failure, requestID: Text) {
            let tenant = failure.metadata.first { $0.key == Caller.requestedTenantKey }?.value
            self.caller = DeniedCallRate.Caller(id: caller.id, tenantID: caller.tenantID)
            self.detail = "\(method) \(failure.reason)" + (tenant.map { " tenant \(Self.quoted($0))" } ?? "")
            self.requestID = requestID
        }

        /// The caller's text, quoted so that it cannot look like a part of the event's own words.
        private static func quoted(_ tenant: String) -> String {
            let isPlain = tenant.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
            return isPlain ? "\"\(tenant)\"" : "of another name than a tenant can have"
        }
    }

    private let resources: Resources
    private let rate: Mutex<DeniedCallRate>

    init(_ resources: Resources) {
        self.resources = resources
        self.rate = Mutex(DeniedCallRate(limits: resources.limits, now: resources.steadyClock.now()))
    }

    /// Whether a refusal is about a caller's credential, and not about an end user.
    public static func isDenial(_ failure: Failure) -> Bool {
        failure.is(.insufficientPermission, .projectEventsNotAllowed, .passwordHashExportNotAllowed, .addressNotAllowed)
    }

    /// Calls that no event tells of, because too many callers were refused at once.
    public var forgottenCount: Int64 { rate.withLock { $0.forgotten } }

    /// Notes a call; the event is written after the answer. Never fails: the answer is the refusal, even if the event
    /// is lost.
    public func note(_ call: Call) {
        let now = resources.steadyClock.now()
        guard let before = rate.withLock({ $0.admit(call.caller, now: now) }) else { return }
        let detail = before == 0 ? call.detail : "\(before) before it; \(call.detail)"
        Task { await write([(call.caller, Text(detail), call.requestID)]) }
    }

    /// Writes events for the calls that were only counted so far.
    func sweep() async {
        let due = rate.withLock { $0.takeDue(now: resources.steadyClock.now()) }
        await write(due.map { ($0.caller, Text("\($0.count) more calls"), .empty) })
    }

    private func write(_ events: [(caller: DeniedCallRate.Caller, detail: Text, requestID: Text)]) async {
        guard !events.isEmpty else { return }
        let now = resources.clock.now()
        do {
            try await resources.store.write(for: .session) { transaction in
                for event in events {
                    // The log of a tenant that is deleted has ended.
                    let tenantID = event.caller.tenantID ?? .empty
                    let isLive = try transaction.reading.isLiveTenant(tenantID)
                    try transaction.appendEvent(
                        .callDenied, tenantID: isLive ? tenantID : .empty,
                        origin: Origin(actor: event.caller.id, requestID: event.requestID, peerAddress: .empty),
                        detail: event.detail, now: now)
                }
            }
        } catch StoreError.corrupt where events.count > 1 {
            // A damaged record of one tenant does not keep the events of others.
            for event in events { await write([event]) }
        } catch {
            resources.log.error("refused calls were not recorded", ["error": .text("\(error)")])
        }
    }
}
