import Glibc

/// Checks data.mdb with pread(2) before LMDB maps it: a mapping past the end of a truncated file causes SIGBUS later.
///
/// The layout is LMDB 0.9's (`MDB_page`, `MDB_meta`, `MDB_node` in mdb.c) on a 64-bit little-endian machine.
struct DataFile: ~Copyable {
    private static let magic: UInt32 = 0xBEEF_C0DE
    static let pageHeaderByteCount: UInt64 = 16
    /// The largest depth of a tree of LMDB.
    static let depthMax = 32

    enum PageFlag {
        static let branch: UInt16 = 0x01
        static let leaf: UInt16 = 0x02
        static let overflow: UInt16 = 0x04
        static let meta: UInt16 = 0x08
    }

    struct Meta {
        /// Where the meta page begins in the file.
        var offset: UInt64
        var pageByteCount: UInt64
        var freePagesRoot: UInt64
        var lastPage: UInt64
        var transactionID: UInt64
        /// The transaction ID in the other meta page.
        var otherTransactionID: UInt64 = 0

        /// LMDB writes the two pages in turn, so that one is a transaction behind the other. If it is not, a number was
        /// damaged or a write was lost, and the page with the higher number need not be the newest.
        var isNextToOther: Bool { transactionID == 0 || transactionID - otherTransactionID == 1 }
    }

    private let file: Int32
    let byteCount: UInt64

    /// The path of the data file of the store in `directory`, as LMDB names it.
    static func path(in directory: String) -> String { directory + "/data.mdb" }

    /// Nil when there is no such file.
    init?(path: String) throws(StoreError) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw StoreError(code: errno, operation: "open data file")
        }
        var status = stat()
        let code = fstat(file, &status) == 0 ? 0 : errno
        guard code == 0 else {
            close(file)
            throw StoreError(code: code, operation: "fstat data file")
        }
        self.file = file
        self.byteCount = UInt64(status.st_size)
    }

    deinit { close(file) }

    /// The newest meta page. Throws `.truncated` if a page in use lies past the end, `.damaged` if there is no readable
    /// meta page.
    func check() throws(StoreError) -> Meta {
        let meta = try newestMeta()
        let pageCount = byteCount / meta.pageByteCount
        guard meta.lastPage >= pageCount else { return meta }
        // This alone is no truncation: LMDB does not write pages that one transaction took from the end and freed
        // again. So a healthy file can be shorter by such pages, and all of them are in the list of free pages.
        var missing = Set(pageCount...meta.lastPage)
        try forEachFreePage(meta) { missing.remove($0) }
        guard missing.isEmpty else { throw .truncated }
        return meta
    }

    func newestMeta() throws(StoreError) -> Meta {
        let first = try meta(at: 0)
        let second = try meta(at: first.pageByteCount)
        var (newest, other) = second.transactionID > first.transactionID ? (second, first) : (first, second)
        newest.otherTransactionID = other.transactionID
        return newest
    }

    private func meta(at offset: UInt64) throws(StoreError) -> Meta {
        guard offset + 152 <= byteCount else { throw .truncated }
        guard try load(UInt16.self, at: offset + 10) & PageFlag.meta != 0,
            try load(UInt32.self, at: offset + 16) == Self.magic
        else { throw .damaged(operation: "meta page") }
        let meta = Meta(
            offset: offset,
            pageByteCount: UInt64(try load(UInt32.self, at: offset + 40)),
            freePagesRoot: try load(UInt64.self, at: offset + 80),
            lastPage: try load(UInt64.self, at: offset + 136),
            transactionID: try load(UInt64.self, at: offset + 144))
        guard meta.pageByteCount.nonzeroBitCount == 1, (512...65_536).contains(meta.pageByteCount),
            (1..<1 << 40).contains(meta.lastPage), meta.transactionID < 1 << 56
        else { throw .damaged(operation: "meta page") }
        // A file this much shorter than its last page has lost more than unused pages; this bounds the set above.
        guard meta.lastPage < byteCount / meta.pageByteCount + 1 << 18 else { throw .truncated }
        return meta
    }

    /// Walks the tree of free pages: transaction id → count and page numbers.
    private func forEachFreePage(_ meta: Meta, _ body: (UInt64) -> Void) throws(StoreError) {
        guard meta.freePagesRoot != .max else { return }
        var waiting: [(page: UInt64, depth: Int)] = [(meta.freePagesRoot, 0)]
        var visitedCount: UInt64 = 0
        while let (page, depth) = waiting.popLast() {
            visitedCount += 1
            guard depth < Self.depthMax, visitedCount <= meta.lastPage else { throw .damaged(operation: "free pages") }
            let start = page &* meta.pageByteCount
            let flags = try load(UInt16.self, at: start + 10)
            let nodeCount = (UInt64(try load(UInt16.self, at: start + 12)) &- Self.pageHeaderByteCount) / 2
            guard nodeCount <= meta.pageByteCount / 2 else { throw .damaged(operation: "free pages") }
            for index in 0..<nodeCount {
                let node = start + UInt64(try load(UInt16.self, at: start + Self.pageHeaderByteCount + index * 2))
                let low = UInt64(try load(UInt32.self, at: node))
                if flags & PageFlag.branch != 0 {
                    waiting.append((low | UInt64(try load(UInt16.self, at: node + 4)) << 32, depth + 1))
                } else if flags & PageFlag.leaf != 0 {
                    let isOverflow = try load(UInt16.self, at: node + 4) & 1 != 0
                    let data = node + 8 + UInt64(try load(UInt16.self, at: node + 6))
                    let list =
                        isOverflow
                        ? try load(UInt64.self, at: data) &* meta.pageByteCount &+ Self.pageHeaderByteCount : data
                    try forEachPage(inListAt: list, body)
                } else {
                    throw .damaged(operation: "free pages")
                }
            }
        }
    }

    private func forEachPage(inListAt offset: UInt64, _ body: (UInt64) -> Void) throws(StoreError) {
        let count = try load(UInt64.self, at: offset)
        guard count <= byteCount / 8 else { throw .damaged(operation: "free pages") }
        for index in 0..<count { body(try load(UInt64.self, at: offset + 8 + index * 8)) }
    }

    /// Reads a number. Throws `.truncated` for a read past the end of the file, which this type exists to find.
    func load<Number: FixedWidthInteger>(_: Number.Type, at offset: UInt64) throws(StoreError) -> Number {
        let size = MemoryLayout<Number>.size
        guard offset <= byteCount, UInt64(size) <= byteCount - offset else { throw .truncated }
        var value: Number = 0
        let readCount = withUnsafeMutableBytes(of: &value) { pread(file, $0.baseAddress, size, off_t(offset)) }
        guard readCount == size else { throw readCount < 0 ? StoreError(code: errno, operation: "read") : .truncated }
        return Number(littleEndian: value)
    }

    /// The bytes from `offset` on. Throws `.truncated` if the file is too short for them.
    func bytes(at offset: UInt64, count: Int) throws(StoreError) -> [UInt8] {
        guard offset <= byteCount, UInt64(count) <= byteCount - offset else { throw .truncated }
        var bytes = [UInt8](repeating: 0, count: count)
        // Proof: the offset lies within the file.
        guard pread(file, &bytes, count, off_t(offset)) == count else { throw .damaged(operation: "read") }
        return bytes
    }
}
