public import Base

/// A list of the server, asked for page by page as it is read: `for try await user in admin.listUsers()`.
///
/// One page is held at a time. Each iteration begins anew; what is created or deleted meanwhile may or may not be seen.
public struct Listing<Element: Sendable>: AsyncSequence, Sendable {
    public typealias Failure = Base.Failure
    typealias Fetch = @Sendable (_ token: Text) async throws(Failure) -> (page: [Element], next: Text)

    private let fetch: Fetch

    init(_ fetch: @escaping Fetch) { self.fetch = fetch }

    public func makeAsyncIterator() -> Iterator { Iterator(fetch: fetch) }

    /// The whole list; for those that are known to be short.
    public func all() async throws(Base.Failure) -> [Element] {
        var elements: [Element] = []
        for try await element in self { elements.append(element) }
        return elements
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let fetch: Fetch
        private var page: ArraySlice<Element> = []
        /// Nil: the page is the last one.
        private var nextToken: Text? = .empty

        fileprivate init(fetch: @escaping Fetch) { self.fetch = fetch }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Element? {
            try await next()
        }

        /// On the caller's actor, unlike the protocol's default.
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
