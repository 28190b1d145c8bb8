import Base
import Identity
import Messages
import Store

/// postern.v1.Tenants/WatchDenials: reads the new denials, then waits for more; nothing is kept per watcher.
enum TenantsWatchDenials: ServerStreamMethod {
    private static let batchMax = 100
    /// A credential expires without a commit.
    private static let lookEvery = Duration.seconds(60)

    static func handle(
        _ request: TenantsWatchDenialsRequest, _ call: StreamCall, _ replies: ReplyStream<TenantsWatchDenialsResponse>
    ) async throws {
        guard (-1..<Int64.max).contains(request.afterSequence) else {
            throw Failure.invalid(.invalidSequence, field: "after_sequence", "must be -1, 0 or a denial's sequence")
        }
        let store = call.project.store
        let tenantID = call.tenantID
        // A node of a cluster has reached the journal's end here: a denial that another node told is in its store.
        let newest = try store.read { try $0.lastDenialSequence(tenantID: tenantID) }
        var last = request.afterSequence == 0 ? newest : request.afterSequence
        guard last <= newest else { throw Failure.beyondLogEnd }
        // The watch begins before the refusals are read, so that none between the two is missed.
        let watch = call.watch([.denials(tenantID), .tenant(tenantID)], on: replies.loop)
        defer { watch.end() }
        var mayBeBehind = true
        while true {
            let (behind, isBehind) = (last, mayBeBehind)
            (last, mayBeBehind) = try await replies.send(inTurn: isBehind) {
                _ = try call.stillAdmitted()
                let limit = isBehind ? batchMax : StreamCall.wokenRowsMax
                let denials = try store.read { try $0.denials(tenantID: tenantID, after: behind, limit: limit) }
                let messages = denials.map { TenantsWatchDenialsResponse(denial: $0) }
                return (messages, (denials.last?.sequence ?? behind, denials.count == limit))
            }
            if !mayBeBehind { try await watch.next(timeout: lookEvery) }
        }
    }
}
