import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Audit/ListEvents
enum AuditListEvents: PageMethod {
    static func handle(
        _ request: AuditListEventsRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<AuditListEventsResponse> {
        try call.caller?.requireEvents(of: call.tenantID)
        let page = try call.page(request)
        let found = try transaction.events(
            request.filter ?? EventFilter(), tenantID: call.tenantID, from: try start(of: page, request),
            reversed: !request.oldestFirst, bounds: page.bounds)
        return .message(
            AuditListEventsResponse(
                events: try found.events.map { try AuditEvent($0, includesProof: request.includeProof) },
                nextPageToken: page.token(behind: found.last.map { Text("\($0)") }),
                scanned: Int32(clamping: found.rowReadCount), isComplete: found.last == nil))
    }

    private static func start(of page: Page, _ request: AuditListEventsRequest) throws -> EventStart {
        guard let from = UInt64(exactly: request.fromSequence) else {
            throw Failure.invalid(.invalidSequence, field: "from_sequence", "must be 0 or an event's sequence")
        }
        guard let last = page.last else { return from == 0 ? .first : .at(from) }
        // Proof: nil for what is no number.
        guard let sequence = UInt64(last.string) else { throw Page.invalidToken }
        return .after(sequence)
    }
}
