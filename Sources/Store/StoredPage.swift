public import Base

/// One page of a list: its encoded items in the map, and where the next page begins.
///
/// Valid until the transaction that read it ends. A page is read at once, in one short transaction. A transaction that
/// stayed open for a slow client would keep every page of the file that is replaced meanwhile.
public struct StoredPage<Key: StoreKey> {
    public fileprivate(set) var items: [UnsafeRawBufferPointer] = []
    /// The key of the last row that was read, if the list goes on after it; nil on the last page.
    public fileprivate(set) var last: Key?
    /// How many rows were read for the page, whether they are in it or not.
    public fileprivate(set) var rowReadCount = 0
}

/// The part that a row of the table has in a page.
public enum PagedRow {
    /// An item; the bytes lie in the row, or in one of another table that the row leads to.
    case item(UnsafeRawBufferPointer)
    /// Left out: deleted, or not what is asked for.
    case skipped
    /// Left out because of these bytes. They were read from another table, and count as read.
    case rejected(UnsafeRawBufferPointer)
    /// The list ends before this row.
    case end
}

/// When a page ends: at its number of items, at their bytes, or at what was read for it, so that neither long rows nor
/// a filter that nothing passes make one page long work.
public struct PageBounds: Sendable {
    public let itemMax: Int
    public let byteMax: Int
    public let rowsReadMax: Int
    public let bytesReadMax: Int

    /// `byteMax` is for pages that are smaller than those of lists.
    public init(itemMax: Int, byteMax: Int = .max, limits: Limits) {
        self.itemMax = itemMax
        self.byteMax = min(byteMax, limits.pageBytesMax)
        rowsReadMax = limits.pageRowsReadMax
        bytesReadMax = limits.pageBytesReadMax
    }

    /// The same bounds for fewer items.
    public init(_ bounds: PageBounds, itemMax: Int) {
        (self.itemMax, byteMax) = (min(itemMax, bounds.itemMax), bounds.byteMax)
        (rowsReadMax, bytesReadMax) = (bounds.rowsReadMax, bounds.bytesReadMax)
    }

    /// The same bounds, or fewer bytes that are read.
    public init(_ bounds: PageBounds, bytesReadMax: Int) {
        (itemMax, byteMax) = (bounds.itemMax, bounds.byteMax)
        (rowsReadMax, self.bytesReadMax) = (bounds.rowsReadMax, min(bytesReadMax, bounds.bytesReadMax))
    }

    /// The same bounds, or fewer rows that are read.
    public init(_ bounds: PageBounds, rowsReadMax: Int) {
        (itemMax, byteMax) = (bounds.itemMax, bounds.byteMax)
        (self.rowsReadMax, bytesReadMax) = (min(rowsReadMax, bounds.rowsReadMax), bounds.bytesReadMax)
    }
}

extension ReadTransaction {
    /// Reads a page of the rows under `prefix`. A page always makes progress: it reads one row at least.
    public func page<Key: StoreKey, Record>(
        of table: Table<Key, Record>, prefix: some KeyPrefix = EmptyPrefix(), from start: ScanStart,
        reversed: Bool = false, bounds: PageBounds, _ classify: (Row<Key, Record>) throws -> PagedRow
    ) throws -> StoredPage<Key> {
        var page = StoredPage<Key>()
        var byteCount = 0
        var bytesRead = 0
        var lastRead: [UInt8] = []
        var goesOn = false
        // Items are handed out as they lie in rows, long values too.
        longValues.beginKeeping()
        defer { longValues.endKeeping() }
        try scan(table, prefix: prefix, from: start, reversed: reversed) { row in
            goesOn = true
            guard page.rowReadCount < bounds.rowsReadMax, bytesRead < bounds.bytesReadMax else { return false }
            switch try classify(row) {
            case .end:
                goesOn = false
                return false
            case .skipped: break
            case .rejected(let bytes): bytesRead += bytes.count
            case .item(let item):
                guard page.items.count < bounds.itemMax, byteCount < bounds.byteMax else { return false }
                page.items.append(item)
                byteCount += item.count
                // An item in the row itself counts twice. With the bounds of `Limits`, a page is full before that
                // matters; with fewer bytes that are read, it ends earlier.
                bytesRead += item.count
            }
            goesOn = false
            page.rowReadCount += 1
            bytesRead += row.value.count
            lastRead.replaceSubrange(0..., with: row.keyBytes)
            return true
        }
        if goesOn {
            guard let last = lastRead.withUnsafeBytes({ Key(stored: $0) }) else { throw corrupt(table.id) }
            page.last = last
        }
        return page
    }
}
