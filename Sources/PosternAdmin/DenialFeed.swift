public import Base
public import Messages
import PosternClient

/// The refusals of one tenant's self-service switches, as they happen.
///
/// Without a start the feed begins at the first `next()`. The feed never ends by itself. While the server cannot be
/// reached the feed waits, and then continues after the last refusal that was read. Cancelling the task ends it with
/// CANCELLED. The feed throws when the server refuses (for example because the credential was revoked or the tenant
/// deleted) and when the channel was shut down. It throws INVALID_SEQUENCE when the server was restored from a backup
/// that is older than the last record that was read: then begin anew.
///
/// ```swift
/// for try await denial in tenant.watchDenials() {
///     print(denial.operation, denial.uid)
/// }
/// ```
public struct DenialFeed: AsyncSequence, Sendable {
    /// The server's refusal, or the reason why the feed cannot go on.
    public typealias Failure = Base.Failure

    let admin: TenantAdmin
    let after: Int64?
    let options: CallOptions

    init(admin: TenantAdmin, after: Int64?, options: CallOptions) {
        self.admin = admin
        self.after = after
        // A feed waits for the server.
        var waiting = options
        waiting.waitsForConnection = true
        self.options = waiting
    }

    /// Begins to read. Each iterator reads the whole feed.
    public func makeAsyncIterator() -> Iterator { Iterator(feed: self) }

    /// Reads the feed for one task.
    public struct Iterator: AsyncIteratorProtocol {
        private var feed: ResumedFeed<TenantsWatchDenialsResponse, Denial>

        fileprivate init(feed: DenialFeed) {
            let (admin, options) = (feed.admin, feed.options)
            self.feed = ResumedFeed(
                after: feed.after,
                newest: { () throws(Base.Failure) in
                    var newest = admin.listDenials(pageSize: 1, options: options).makeAsyncIterator()
                    return try await newest.next()?.sequence ?? 0
                },
                open: { after throws(Base.Failure) in
                    let request = TenantsWatchDenialsRequest(tenantID: admin.tenantID, afterSequence: after)
                    return try await admin.tenants.watchDenials(request, options: options).makeAsyncIterator()
                },
                read: { message in message.denial.map { ($0, $0.sequence) } })
        }

        /// The next refusal, called by `for try await`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Denial? {
            try await next()
        }

        /// The next refusal, when there is one. Runs on the caller's actor, unlike the protocol's default.
        public mutating func next() async throws(Base.Failure) -> Denial? { try await feed.next() }
    }
}
