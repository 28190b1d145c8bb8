public import Base

/// One page of a list: its items as they lie in the map, encoded, and where the next page begins.
///
/// Valid until the transaction that read it ends. A page is read at once, in one short transaction: a transaction that
/// stayed open while a client takes its time would keep every page of the file that is replaced meanwhile.
public struct StoredPage {
    /// What a row of the table is to the page.
    public enum Row {
        /// An item; the bytes lie in the row.
        case item(UnsafeRawBufferPointer)
        /// Left out: deleted, or not what is asked for.
        case skipped
        /// The list ends before this row.
        case end
    }

    public fileprivate(set) var items: [UnsafeRawBufferPointer] = []
    /// The last row that was read, when the list goes on behind it; nil on the last page.
    public fileprivate(set) var lastKey: [UInt8]?
}

/// When a page ends: at its number of items, at their bytes, or at what was read for it, so that neither long rows nor
/// a filter that nothing passes make one page long work.
public struct PageBounds: Sendable {
    public let itemMax: Int
    let byteMax: Int
    let rowsReadMax: Int
    let bytesReadMax: Int

    public init(itemMax: Int, limits: Limits) {
        self.itemMax = itemMax
        byteMax = limits.pageBytesMax
        rowsReadMax = limits.pageRowsReadMax
        bytesReadMax = limits.pageBytesReadMax
    }
}

extension ReadTransaction {
    /// Reads a page of the rows under `prefix`. A page always makes progress: it reads one row at least.
    public func page<Key: StoreKey, Record>(
        of table: Table<Key, Record>, prefix: some StoreKey = EmptyPrefix(), from start: ScanStart,
        reversed: Bool = false, bounds: PageBounds,
        row: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> StoredPage.Row
    ) throws -> StoredPage {
        var page = StoredPage()
        var byteCount = 0
        var rowsRead = 0
        var bytesRead = 0
        var lastRead: [UInt8] = []
        try scan(table, prefix: prefix, from: start, reversed: reversed) { key, value in
            guard rowsRead < bounds.rowsReadMax, bytesRead < bounds.bytesReadMax else {
                page.lastKey = lastRead
                return false
            }
            switch try row(key, value) {
            case .end: return false
            case .skipped: break
            case .item(let item):
                guard page.items.count < bounds.itemMax, byteCount < bounds.byteMax else {
                    page.lastKey = lastRead
                    return false
                }
                page.items.append(item)
                byteCount += item.count
            }
            rowsRead += 1
            bytesRead += value.count
            lastRead.replaceSubrange(0..., with: key)
            return true
        }
        return page
    }
}
