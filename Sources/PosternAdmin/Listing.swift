public import Base

/// A list on the server, which is fetched page by page while it is read.
///
/// One page is in memory at a time. Each iteration starts again. Items that are created or deleted meanwhile may or may
/// not appear.
///
/// ```swift
/// for try await user in tenant.listUsers() { print(user.uid, user.email) }
/// let providers = try await tenant.listProviders().all()
/// print(providers.count)
/// ```
public struct Listing<Element: Sendable>: AsyncSequence, Sendable {
    /// The server's refusal, or the reason why it could not be reached.
    public typealias Failure = Base.Failure
    typealias Fetch = @Sendable (_ token: Text) async throws(Failure) -> (page: [Element], next: Text)

    private let fetch: Fetch

    init(_ fetch: @escaping Fetch) { self.fetch = fetch }

    /// Starts at the first page.
    public func makeAsyncIterator() -> Iterator { Iterator(fetch: fetch) }

    /// Reads the whole list into memory. Use it for lists that are known to be short.
    public func all() async throws(Base.Failure) -> [Element] {
        var elements: [Element] = []
        for try await element in self { elements.append(element) }
        return elements
    }

    /// Reads the list for one task.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let fetch: Fetch
        private var page: ArraySlice<Element> = []
        /// Nil: the page is the last one.
        private var nextToken: Text? = .empty

        fileprivate init(fetch: @escaping Fetch) { self.fetch = fetch }

        /// The next item, called by `for try await`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Element? {
            try await next()
        }

        /// The next item. Nil: the list ends. Runs on the caller's actor, unlike the protocol's default.
        public mutating func next() async throws(Base.Failure) -> Element? {
            // A page may be empty and yet not be the last.
            while page.isEmpty, let token = nextToken {
                let (fetched, next) = try await fetch(token)
                page = fetched[...]
                nextToken = next.isEmpty ? nil : next
            }
            return page.popFirst()
        }
    }
}
