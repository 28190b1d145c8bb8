import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Tokens/WatchRevocations: reads the revocations after its cursor, then waits for more.
enum TokensWatchRevocations: ServerStreamMethod {
    private static let batchMax = 500

    static func handle(
        _ request: TokensWatchRevocationsRequest, _ call: StreamCall,
        _ replies: ReplyStream<TokensWatchRevocationsResponse>
    ) async throws {
        guard (0...300).contains(request.heartbeatSeconds) else {
            throw Failure.invalid(.invalidHeartbeat, field: "heartbeat_seconds", "must be 0 to 300")
        }
        let heartbeat = Duration.seconds(request.heartbeatSeconds == 0 ? 10 : request.heartbeatSeconds)
        let feed = RevocationFeed(
            tenantID: try scope(request, call), feedID: call.project.tokens.revocationFeedID,
            retention: request.sessionCookies ? RevocationRetention.sessionCookies : RevocationRetention.idTokens)
        let watch = call.watch(feed.topics, on: replies.loop)
        defer { watch.end() }
        var place = try await start(request.cursor, feed, call, replies)
        var mayBeBehind = true
        while true {
            let limit = mayBeBehind ? batchMax : StreamCall.wokenRowsMax
            (place, mayBeBehind) = try await replies.send(inTurn: mayBeBehind) { [place] in
                try batch(feed, after: place, limit: limit, call)
            }
            if !mayBeBehind { try await watch.next(timeout: heartbeat) }
        }
    }

    // Reading is not inlined, here and below: otherwise its temporary memory would be part of the task of each stream,
    // 12 KB that the allocator does not get back in one piece.
    @inline(never)
    private static func batch(
        _ feed: RevocationFeed, after place: RevocationPlace, limit: Int, _ call: StreamCall
    ) throws -> (TokensWatchRevocationsResponse?, (last: RevocationPlace, isFull: Bool)) {
        try call.project.requireFresh()
        let time = knownUntil(call)
        let batch = try call.project.store.read { transaction in
            try call.checkCaller(in: transaction)
            return try feed.revocations(in: transaction, after: place.sequence, limit: limit)
        }
        let last = batch.last?.place ?? place
        let message = TokensWatchRevocationsResponse(
            revocations: batch.map(\.revocation), cursor: feed.cursor(last), timeMicros: time.microseconds,
            continues: batch.count == limit)
        return (message, (last, batch.count == limit))
    }

    /// The time up to which this node knows all revocations: of other nodes of a cluster, it may have missed the latest
    /// changes. Taken before the read, so that changes which are acknowledged later come with a later message.
    ///
    /// Verifiers take it for the time that it is. So it is the cluster's, also on a node whose clock is wrong.
    private static func knownUntil(_ call: StreamCall) -> Timestamp {
        let store = call.project.store
        return call.now - store.clockDifference - store.staleness
    }

    /// Nil: all tenants.
    private static func scope(_ request: TokensWatchRevocationsRequest, _ call: StreamCall) throws -> Text? {
        guard request.anyTenant else { return call.tenantID }
        guard let own = call.caller?.tenantID else { return nil }
        return own
    }

    /// Sends a snapshot unless the cursor is good. Returns the place to go on from.
    private static func start(
        _ cursor: Text, _ feed: RevocationFeed, _ call: StreamCall,
        _ replies: ReplyStream<TokensWatchRevocationsResponse>
    ) async throws -> RevocationPlace {
        switch try resume(cursor, feed, call) {
        case .goOn(let place): return place
        case .snapshot(var pages, let last, let reason, let time):
            var isFirst = true
            repeat {
                pages = try await replies.send(inTurn: true) { [pages, isFirst] in
                    var pages = pages
                    var message = try nextPage(&pages, call)
                    message.timeMicros = time.microseconds
                    if isFirst {
                        message.snapshotReason = reason
                        message.scope = Scope(tenants: feed.tenantID.map { .tenantID($0) } ?? .all(true))
                    }
                    if pages.isDone { message.cursor = feed.cursor(last) }
                    message.continues = !pages.isDone
                    return (message, pages)
                }
                isFirst = false
            } while !pages.isDone
            return last
        }
    }

    private enum Start {
        case goOn(RevocationPlace)
        case snapshot(RevocationSnapshot, last: RevocationPlace, SnapshotReason, Timestamp)
    }

    // A cluster's stream begins once this node is at the journal's end, so the log is not behind a verifier that comes
    // from another node.
    @inline(never)
    private static func resume(_ cursor: Text, _ feed: RevocationFeed, _ call: StreamCall) throws -> Start {
        try call.project.requireFresh()
        let time = knownUntil(call)
        return try call.project.store.read { transaction in
            switch try feed.resume(cursor, in: transaction) {
            case .behind(let place): return .goOn(place)
            case .snapshot(let reason):
                let last = try transaction.lastRevocationPlace()
                let snapshot = feed.snapshot(through: last.sequence, now: call.project.earliest)
                return .snapshot(snapshot, last: last, reason, time)
            }
        }
    }

    @inline(never)
    private static func nextPage(
        _ pages: inout RevocationSnapshot, _ call: StreamCall
    ) throws -> TokensWatchRevocationsResponse {
        let revocations = try call.project.store.read { try pages.next(in: $0, limit: batchMax) }
        return TokensWatchRevocationsResponse(revocations: revocations)
    }
}
