public import Base
public import Messages
import PosternClient

/// The events of one tenant's log, as they are committed.
///
/// Without a start the feed begins at the first `next()`. The feed never ends by itself. While the server cannot be
/// reached the feed waits, and then continues after the last event that was read. Cancelling the task ends it with
/// CANCELLED. The feed throws when the server refuses (for example because the credential was revoked or the tenant
/// deleted) and when the channel was shut down. It throws INVALID_SEQUENCE when the server was restored from a backup
/// that is older than the last record that was read: then begin anew.
///
/// ```swift
/// for try await event in tenant.watchEvents(EventFilter(kinds: [.callDenied])) {
///     print(event.caller, event.detail)
/// }
/// ```
public struct EventFeed: AsyncSequence, Sendable {
    /// The server's refusal, or the reason why the feed cannot go on.
    public typealias Failure = Base.Failure

    private let records: ResumedFeed<AuditWatchEventsResponse, AuditEvent>

    init(admin: TenantAdmin, filter: EventFilter, after: Int64?, options: CallOptions) {
        records = ResumedFeed(
            after: after, options: options,
            list: { admin.listEvents(pageSize: 1, options: $0) },
            open: { after, options throws(Base.Failure) in
                let request = AuditWatchEventsRequest(tenantID: admin.tenantID, afterSequence: after, filter: filter)
                return try await admin.audit.watchEvents(request, options: options)
            },
            read: { $0.event })
    }

    /// Begins to read. Each iterator reads the whole feed.
    public func makeAsyncIterator() -> Iterator { Iterator(records: records.makeIterator()) }

    /// Reads the feed for one task.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var records: ResumedFeed<AuditWatchEventsResponse, AuditEvent>.Iterator

        /// The next event, called by `for try await`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> AuditEvent? {
            try await next()
        }

        /// The next event, when there is one. Runs on the caller's actor, unlike the protocol's default.
        public mutating func next() async throws(Base.Failure) -> AuditEvent? { try await records.next() }
    }
}
