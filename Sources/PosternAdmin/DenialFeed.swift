public import Base
public import Messages
import PosternClient

/// The refusals of one tenant's self-service switches, as they happen.
///
/// Without a start the feed begins at the first `next()`. The feed never ends by itself. While the server cannot be
/// reached the feed waits, and then goes on behind the last refusal that was read. Cancelling the task ends it with
/// CANCELLED. It throws when the server refuses (for example because the credential was revoked or the tenant deleted)
/// and when the channel was shut down.
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
        // Whoever follows waits for the server.
        var waiting = options
        waiting.waitsForConnection = true
        self.options = waiting
    }

    /// Begins to read. Each iterator reads the whole feed.
    public func makeAsyncIterator() -> Iterator { Iterator(feed: self) }

    /// Reads the feed for one task.
    public struct Iterator: AsyncIteratorProtocol {
        private let feed: DenialFeed
        /// The last refusal that is not to be told; nil: not asked for yet.
        private var last: Int64?
        private var stream: ServerStream<TenantsWatchDenialsResponse>.Iterator?
        private var failureCount = 0

        fileprivate init(feed: DenialFeed) {
            self.feed = feed
            self.last = feed.after
        }

        /// The next refusal, called by `for try await`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Denial? {
            try await next()
        }

        /// The next refusal, when there is one. Runs on the caller's actor, unlike the protocol's default.
        public mutating func next() async throws(Base.Failure) -> Denial? {
            while true {
                do throws(Base.Failure) {
                    if stream == nil { stream = try await open() }
                    while let message = try await stream?.next() {
                        guard let denial = message.denial else { continue }
                        last = denial.sequence
                        failureCount = 0
                        return denial
                    }
                } catch {
                    guard error.code == .unavailable, !error.is(.channelClosed) else { throw error }
                }
                stream = nil
                failureCount += 1
                try await pause(afterFailures: failureCount)
            }
        }

        private mutating func open() async throws(Base.Failure) -> ServerStream<TenantsWatchDenialsResponse>.Iterator {
            let after: Int64
            if let last {
                after = last
            } else {
                var newest = feed.admin.listDenials(pageSize: 1, options: feed.options).makeAsyncIterator()
                after = try await newest.next()?.sequence ?? 0
                last = after
            }
            // To the server 0 is "from now on", which would leave a gap whenever the stream is opened.
            let request = TenantsWatchDenialsRequest(
                tenantID: feed.admin.tenantID, afterSequence: after == 0 ? -1 : after)
            return try await feed.admin.tenants.watchDenials(request, options: feed.options).makeAsyncIterator()
        }
    }
}
