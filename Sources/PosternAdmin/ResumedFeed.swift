import Base
import Messages
import PosternClient

/// Reads a stream of records that have sequences, and opens it again after the last record whenever the server goes
/// away. `DenialFeed` and `EventFeed` share it.
struct ResumedFeed<Response: Message, Element: Sendable> {
    typealias Stream = ServerStream<Response>.Iterator

    /// The sequence of the newest record; 0 when there is none.
    let newest: @Sendable () async throws(Failure) -> Int64
    /// Opens the stream after a record. For the server 0 means "from now on", and -1 means "all that are kept".
    let open: @Sendable (_ after: Int64) async throws(Failure) -> Stream
    /// The record in a message, and its sequence.
    let read: @Sendable (Response) -> (element: Element, sequence: Int64)?

    /// The sequence of the last record that the feed has left out or delivered. Nil: not asked for yet.
    private var last: Int64?
    private var stream: Stream?
    private var failureCount = 0
    private var hasForgottenPosition = false

    init(
        after: Int64?, newest: @escaping @Sendable () async throws(Failure) -> Int64,
        open: @escaping @Sendable (_ after: Int64) async throws(Failure) -> Stream,
        read: @escaping @Sendable (Response) -> (element: Element, sequence: Int64)?
    ) {
        (self.last, self.newest, self.open, self.read) = (after, newest, open, read)
    }

    /// The next record, when there is one.
    mutating func next() async throws(Failure) -> Element? {
        while true {
            do throws(Failure) {
                if stream == nil { stream = try await opened() }
                while let message = try await stream?.next() {
                    guard let (element, sequence) = read(message) else { continue }
                    last = sequence
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

    private mutating func opened() async throws(Failure) -> Stream {
        let after: Int64
        if let last {
            after = last
        } else {
            after = try await newest()
            last = after
        }
        // A 0 would leave a gap whenever the stream is opened.
        return try await open(after == 0 ? -1 : after)
    }
}
