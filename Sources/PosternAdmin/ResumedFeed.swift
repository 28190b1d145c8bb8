import Base
import Messages
import PosternClient

/// A record of a log whose records are numbered.
protocol NumberedRecord: Sendable {
    /// Grows with each record.
    var sequence: Int64 { get }
}

extension Denial: NumberedRecord {}
extension AuditEvent: NumberedRecord {}

/// A stream of records that is opened again after the last record whenever the server goes away: what `DenialFeed` and
/// `EventFeed` are.
struct ResumedFeed<Response: Message, Element: NumberedRecord>: Sendable {
    private let after: Int64?
    private let options: CallOptions
    private let list: @Sendable (CallOptions) -> Listing<Element>
    private let open: @Sendable (_ after: Int64, CallOptions) async throws(Failure) -> ServerStream<Response>
    private let read: @Sendable (Response) -> Element?

    /// `after`: the sequence of the last record to leave out; nil for the newest. `list` begins with the newest record.
    /// `open` opens the stream after a record: for the server 0 means "from now on", and -1 means "all that are kept".
    init(
        after: Int64?, options: CallOptions, list: @escaping @Sendable (CallOptions) -> Listing<Element>,
        open: @escaping @Sendable (_ after: Int64, CallOptions) async throws(Failure) -> ServerStream<Response>,
        read: @escaping @Sendable (Response) -> Element?
    ) {
        (self.after, self.list, self.open, self.read) = (after, list, open, read)
        // A feed waits for the server.
        var waiting = options
        waiting.waitsForConnection = true
        self.options = waiting
    }

    func makeIterator() -> Iterator { Iterator(feed: self, last: after) }

    /// Reads the feed for one task.
    struct Iterator {
        private let feed: ResumedFeed
        /// The sequence of the last record that the feed has left out or delivered. Nil: not asked for yet.
        private var last: Int64?
        private var stream: ServerStream<Response>.Iterator?
        private var failureCount = 0
        private var hasForgottenPosition = false

        fileprivate init(feed: ResumedFeed, last: Int64?) { (self.feed, self.last) = (feed, last) }

        /// The next record, when there is one.
        mutating func next() async throws(Failure) -> Element? {
            while true {
                do throws(Failure) {
                    if stream == nil { stream = try await opened() }
                    while let message = try await stream?.next() {
                        guard let element = feed.read(message) else { continue }
                        last = element.sequence
                        (failureCount, hasForgottenPosition) = (0, false)
                        return element
                    }
                } catch {
                    if error.is(.invalidPosition), !hasForgottenPosition {
                        // The channel has forgotten the refused journal position: the next attempt may succeed.
                        hasForgottenPosition = true
                    } else {
                        guard error.code == .unavailable, !error.is(.channelClosed) else { throw error }
                    }
                }
                stream = nil
                failureCount += 1
                try await pause(afterFailures: failureCount)
            }
        }

        private mutating func opened() async throws(Failure) -> ServerStream<Response>.Iterator {
            let after: Int64
            if let last {
                after = last
            } else {
                var newest = feed.list(feed.options).makeAsyncIterator()
                after = try await newest.next()?.sequence ?? 0
                last = after
            }
            // A 0 would leave a gap whenever the stream is opened.
            return try await feed.open(after == 0 ? -1 : after, feed.options).makeAsyncIterator()
        }
    }
}
