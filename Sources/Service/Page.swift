import Base

/// Where a listing goes on, and how much of it is wanted.
struct Page {
    let size: Int
    /// The last item of the page before.
    let last: Text?

    /// INVALID_PAGE_SIZE, INVALID_PAGE_TOKEN.
    init(size: Int32, token: Text, limits: Limits) throws(Failure) {
        guard (0...limits.pageSizeMax).contains(Int(size)) else {
            throw .invalid("INVALID_PAGE_SIZE", field: "page_size", "must be 0 to \(limits.pageSizeMax)")
        }
        self.size = size == 0 ? limits.pageSizeDefault : Int(size)
        guard !token.isEmpty else {
            self.last = nil
            return
        }
        guard token.byteCount <= 512, let bytes = Base64.url.decode(token.bytes), let last = Text(validating: bytes)
        else {
            throw Self.invalidToken
        }
        self.last = last
    }

    static let invalidToken = Failure.invalid(
        "INVALID_PAGE_TOKEN", field: "page_token", "is not one this server gave out; start from the first page")

    /// The token of the page behind `last`.
    static func token(after last: Text?) -> Text {
        last.map { Text(unchecked: Base64.url.encode($0.bytes)) } ?? .empty
    }
}
