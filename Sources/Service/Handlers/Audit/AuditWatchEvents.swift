import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Audit/WatchEvents: reads the new events, then waits for more; nothing is kept per watcher.
enum AuditWatchEvents: ServerStreamMethod {
    private static let batchMax = 100
    /// A small batch, because a batch waits in the stream while its client takes its time.
    private static let batchByteMax = 8 * 1024
    /// A credential expires without a commit.
    private static let lookEvery = Duration.seconds(60)

    static func handle(
        _ request: AuditWatchEventsRequest, _ call: StreamCall, _ replies: ReplyStream<AuditWatchEventsResponse>
    ) async throws {
        let tenantID = call.tenantID
        try call.caller?.requireEvents(of: tenantID)
        guard (-1..<Int64.max).contains(request.afterSequence) else {
            throw Failure.invalid(.invalidSequence, field: "after_sequence", "must be -1, 0 or an event's sequence")
        }
        let store = call.project.store
        // A node of a cluster has reached the journal's end here: an event that another node told is in its store.
        let newest = try store.read { try $0.newestEventSequence(tenantID: tenantID) }
        var last = request.afterSequence == 0 ? newest : UInt64(clamping: request.afterSequence)
        guard last <= newest else { throw Failure.beyondLogEnd }
        // The watch begins before the log is read, so that no event between the two is missed.
        let watch = call.watch([.events(tenantID), .tenant(tenantID)], on: replies.loop)
        defer { watch.end() }
        let bounds = PageBounds(itemMax: batchMax, byteMax: batchByteMax, limits: call.limits)
        let filter = withoutRepeatedKinds(request.filter ?? EventFilter())
        var mayBeBehind = true
        while true {
            let (behind, isBehind) = (last, mayBeBehind)
            (last, mayBeBehind) = try await replies.send(inTurn: isBehind) {
                _ = try call.stillAdmitted()
                let few = PageBounds(bounds, rowsReadMax: StreamCall.wokenRowsMax)
                return try messages(filter, request.includeProof, after: behind, isBehind ? bounds : few, call)
            }
            if !mayBeBehind { try await watch.next(timeout: lookEvery) }
        }
    }

    /// The request may repeat a kind thousands of times, and each look at the log goes through all of them.
    private static func withoutRepeatedKinds(_ filter: EventFilter) -> EventFilter {
        var filter = filter
        filter.kinds = Array(Set(filter.kinds))
        return filter
    }

    /// The events after `last`, the sequence to go on from, and whether there may be more by now.
    @inline(never)
    private static func messages(
        _ filter: EventFilter, _ includesProof: Bool, after last: UInt64, _ bounds: PageBounds, _ call: StreamCall
    ) throws -> ([AuditWatchEventsResponse], (last: UInt64, mayBeBehind: Bool)) {
        let (page, newest) = try call.project.store.read { transaction in
            let page = try transaction.events(
                filter, tenantID: call.tenantID, from: .after(last), reversed: false, bounds: bounds)
            return (page, try transaction.newestEventSequence(tenantID: call.tenantID))
        }
        let messages = try page.events.map {
            AuditWatchEventsResponse(event: try AuditEvent($0, includesProof: includesProof))
        }
        return (messages, (page.last ?? max(last, newest), page.last != nil))
    }
}
