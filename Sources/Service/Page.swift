import Base
import Crypto
import Identity
import Messages
import Store

/// The place where a listing goes on, and the size of the page.
///
/// A page token is base64url(version ‖ tag ‖ position). The position is the last item of the page before. The tag is
/// a MAC over the method, the tenant, the request's other fields and the position: a token continues exactly the
/// listing that gave it out. Every node of a cluster makes the same key from the master key.
struct Page {
    private static let version: UInt8 = 1
    private static let tagByteCount = 16
    private static let tokenByteCountMax = 512

    let bounds: PageBounds
    /// The last item of the page before.
    let last: Text?
    private let key: HMACKey
    /// The listing that a token is bound to, as the beginning of the bytes under the tag.
    private let listing: [UInt8]

    /// INVALID_PAGE_SIZE, INVALID_PAGE_TOKEN.
    init(
        of request: some PagedRequest, method: String, tenantID: Text, key: HMACKey, limits: Limits
    ) throws(Failure) {
        guard (0...limits.pageSizeMax).contains(Int(request.pageSize)) else {
            throw .invalid(.invalidPageSize, field: "page_size", "must be 0 to \(limits.pageSizeMax)")
        }
        let size = request.pageSize == 0 ? limits.pageSizeDefault : Int(request.pageSize)
        var filter = request
        filter.pageSize = 0
        filter.pageToken = .empty
        try self.init(
            at: request.pageToken, of: filter, method: method, tenantID: tenantID, key: key, itemMax: size,
            limits: limits)
    }

    /// The page at `token`, or the first one where it is empty. `filter` is the request without the fields that may
    /// differ from page to page. INVALID_PAGE_TOKEN.
    init(
        at token: Text, of filter: some Message, method: String, tenantID: Text, key: HMACKey, itemMax: Int,
        limits: Limits
    ) throws(Failure) {
        self.bounds = PageBounds(itemMax: itemMax, limits: limits)
        self.key = key
        self.listing = Self.joined([[UInt8](method.utf8), tenantID.bytes, filter.encoded()])
        self.last = token.isEmpty ? nil : try Self.position(in: token, key: key, listing: listing)
    }

    static let invalidToken = Failure.invalid(
        .invalidPageToken, field: "page_token",
        "is not one this server gave out for the same request; start from the first page")

    /// The token of the page that follows; empty if there is none. `position` names a row among those of the listing.
    func token<Key>(after page: StoredPage<Key>, position: (Key) -> Text) -> Text {
        token(behind: page.last.map(position))
    }

    /// The token of the page that follows the item at `last`; empty for none.
    func token(behind last: Text?) -> Text {
        guard let last else { return .empty }
        let tag = key.tag(of: listing + last.bytes).prefix(Self.tagByteCount)
        return Text(unchecked: Base64.url.encode([Self.version] + tag + last.bytes))
    }

    /// Where the scan of this page begins.
    func start(_ key: (Text) -> some StoreKey) -> ScanStart { last.map { .after(key($0)) } ?? .first }

    private static func position(in token: Text, key: HMACKey, listing: [UInt8]) throws(Failure) -> Text {
        guard token.byteCount <= tokenByteCountMax, let bytes = Base64.url.decode(token.bytes),
            bytes.count >= 1 + tagByteCount, bytes[0] == version
        else { throw invalidToken }
        let position = Array(bytes[(1 + tagByteCount)...])
        let expected = Array(key.tag(of: listing + position).prefix(tagByteCount))
        guard constantTimeEqual(Array(bytes[1...tagByteCount]), expected), let position = Text(validating: position)
        else { throw invalidToken }
        return position
    }

    /// Each part follows its length, so that no part can pass for the end of the part before it.
    private static func joined(_ parts: [[UInt8]]) -> [UInt8] {
        parts.flatMap { part in
            withUnsafeBytes(of: UInt64(part.count).bigEndian) { [UInt8]($0) } + part
        }
    }
}

extension PagedRow {
    /// The record's field `item`, unless its field `deleted` says that nothing but a tombstone is left.
    static func undeleted(
        _ record: UnsafeRawBufferPointer, item: Int, deleted: Int
    ) throws(DecodeError) -> PagedRow {
        var row = PagedRow.skipped
        var fields = FieldReader(record)
        while let field = try fields.next() {
            switch field.value {
            case .bytes(let bytes) where field.number == item: row = .item(bytes)
            case .varint(let isDeleted) where field.number == deleted && isDeleted != 0: return .skipped
            default: break
            }
        }
        return row
    }
}
