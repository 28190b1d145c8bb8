import Base
import Identity
import Messages
import Store

/// postern.v1.Tokens/WatchRevocations: reads what is new behind its cursor, then waits for more.
enum TokensWatchRevocations: ServerStreamMethod {
    private static let batchMax = 500

    static func handle(
        _ request: TokensWatchRevocationsRequest, _ call: Call,
        _ replies: ReplyStream<TokensWatchRevocationsResponse>
    ) async throws {
        guard (0...300).contains(request.heartbeatSeconds) else {
            throw Failure.invalid("INVALID_HEARTBEAT", field: "heartbeat_seconds", "must be 0 to 300")
        }
        let heartbeat = Duration.seconds(request.heartbeatSeconds == 0 ? 10 : request.heartbeatSeconds)
        let feed = RevocationFeed(
            tenantID: try scope(request, call), feedID: call.project.revocationFeedID,
            retention: request.sessionCookies ? RevocationRetention.sessionCookies : RevocationRetention.idTokens)
        let watch = call.project.changes.watch([feed.topic, .callers], on: replies.loop)
        defer { watch.end() }
        var sequence = try await start(request.cursor, feed, call, replies)
        while true {
            // Before the read: what is acknowledged after this moment comes with the next message.
            let time = call.now
            let batch = try call.project.store.read { transaction in
                try call.checkCaller(in: transaction)
                return try feed.revocations(in: transaction, after: sequence, limit: batchMax)
            }
            sequence = batch.last?.sequence ?? sequence
            try await replies.send(
                TokensWatchRevocationsResponse(
                    revocations: batch.map(\.revocation), cursor: feed.cursor(sequence), timeMicros: time.microseconds)
            )
            if batch.count < batchMax { try await watch.next(timeout: heartbeat) }
        }
    }

    /// Nil: all tenants.
    private static func scope(_ request: TokensWatchRevocationsRequest, _ call: Call) throws -> Text? {
        guard request.anyTenant else { return call.tenantID }
        guard let own = call.caller?.tenantID else { return nil }
        return own
    }

    /// Sends a snapshot unless the cursor is good; returns where to go on.
    private static func start(
        _ cursor: Text, _ feed: RevocationFeed, _ call: Call, _ replies: ReplyStream<TokensWatchRevocationsResponse>
    ) async throws -> Int64 {
        let store = call.project.store
        let reason: SnapshotReason
        switch try store.read({ try feed.resume(cursor, in: $0) }) {
        case .behind(let sequence): return sequence
        case .snapshot(let why): reason = why
        }
        let now = call.now
        let last = try store.read { try $0.lastRevocationSequence() }
        var pages = feed.snapshot(through: last, now: now)
        var isFirst = true
        while true {
            let revocations = try store.read { try pages.next(in: $0, limit: batchMax) }
            let isLast = pages.isDone
            try await replies.send(
                TokensWatchRevocationsResponse(
                    revocations: revocations, cursor: isLast ? feed.cursor(last) : .empty,
                    timeMicros: now.microseconds, snapshotReason: isFirst ? reason : .unspecified,
                    snapshotContinues: !isLast))
            if isLast { return last }
            isFirst = false
        }
    }
}
