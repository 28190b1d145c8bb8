internal import CLMDB

/// Reads every page of a data file that is in use, by pread(2), and checks it against LMDB's format (mdb.c of 0.9). A
/// damaged page is a finding here; through LMDB's mapping it would be a fault.
///
/// A page must state its own number and kind, be used once, and hold its keys in order and within the bounds that the
/// pages above give. A tree must have the depth and the counts that its record states. No flag may be set that the
/// store never sets: LMDB follows a flag without looking further, even into memory that is not there.
final class PageWalk {
    /// A tree's record in LMDB (`MDB_db`, 48 bytes).
    struct Tree {
        static let byteCount = 48

        /// The kind of values that the tree's rows have.
        enum Content {
            case records, trees
            /// Lists of page numbers, under keys that are numbers of 8 bytes in this machine's order.
            case freePages
        }

        var name: String
        var content: Content
        /// `md_flags`: how LMDB is to compare keys.
        var flags: UInt16
        var depth: Int
        var branchPageCount: UInt64
        var leafPageCount: UInt64
        var overflowPageCount: UInt64
        var rowCount: UInt64
        var root: UInt64

        var hasNumberKeys: Bool { content == .freePages }

        init(name: String, content: Content = .records, bytes: UnsafeRawBufferPointer) {
            func number<Number: FixedWidthInteger>(_: Number.Type, _ offset: Int) -> Number {
                Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
            }
            self.name = name
            self.content = content
            self.flags = number(UInt16.self, 4)
            self.depth = Int(number(UInt16.self, 6))
            self.branchPageCount = number(UInt64.self, 8)
            self.leafPageCount = number(UInt64.self, 16)
            self.overflowPageCount = number(UInt64.self, 24)
            self.rowCount = number(UInt64.self, 32)
            self.root = number(UInt64.self, 40)
        }
    }

    /// A row in its place.
    struct Row {
        var key: UnsafeRawBufferPointer
        var value: UnsafeRawBufferPointer
        var page: UInt64
    }

    private struct Counts {
        var branchPages: UInt64 = 0
        var leafPages: UInt64 = 0
        var overflowPages: UInt64 = 0
        var rows: UInt64 = 0
    }

    private let file: DataFile
    let meta: DataFile.Meta
    private let pageByteCount: Int
    private var claimedBits: [UInt64]
    private(set) var claimedCount: UInt64 = 2
    var findings = Findings()

    init(_ file: consuming DataFile) throws(StoreError) {
        self.meta = try file.newestMeta()
        self.file = file
        self.pageByteCount = Int(clamping: meta.pageByteCount)
        self.claimedBits = [UInt64](repeating: 0, count: Int(clamping: meta.lastPage / 64 + 1))
        claimedBits[0] = 0b11
    }

    /// The list of free pages, and the tree of all tables.
    func roots() throws(StoreError) -> (free: Tree, main: Tree) {
        let bytes = try file.bytes(at: meta.offset + 40, count: 2 * Tree.byteCount)
        return bytes.withUnsafeBytes { bytes in
            let (free, main) = (bytes[..<Tree.byteCount], bytes[Tree.byteCount...])
            return (
                Tree(name: "free pages", content: .freePages, bytes: UnsafeRawBufferPointer(rebasing: free)),
                Tree(name: "tables", content: .trees, bytes: UnsafeRawBufferPointer(rebasing: main))
            )
        }
    }

    /// Marks `count` pages from `first` on as used. False, with a finding, if they do not exist or are used already.
    func claim(_ first: UInt64, count: UInt64 = 1, for tree: String, at place: UInt64) -> Bool {
        guard first >= 2, first <= meta.lastPage, count >= 1, count <= meta.lastPage - first + 1 else {
            findings.add("\(tree): page number out of range", at: "page \(place)")
            return false
        }
        for page in first..<first + count {
            let (word, bit) = (Int(clamping: page / 64), UInt64(1) << (page % 64))
            guard claimedBits[word] & bit == 0 else {
                findings.add("\(tree): page used twice", at: "page \(page)")
                return false
            }
            claimedBits[word] |= bit
        }
        claimedCount += count
        return true
    }

    func isClaimed(_ page: UInt64) -> Bool {
        page <= meta.lastPage && claimedBits[Int(clamping: page / 64)] & (UInt64(1) << (page % 64)) != 0
    }

    /// Calls `body` for each page that a row of the list of free pages names: transaction id → count and page numbers.
    /// Returns the count; nil, with a finding, if the row is no such list.
    func forEachFreePage(in row: Row, _ body: (UInt64) -> Void) -> UInt64? {
        let numbers = row.value.count / 8
        guard numbers >= 1 else {
            findings.add("free pages: empty row", at: "page \(row.page)")
            return nil
        }
        let count = row.value.loadUnaligned(as: UInt64.self)
        guard count < numbers else {
            findings.add("free pages: row leaves its value", at: "page \(row.page)")
            return nil
        }
        for index in 0..<Int(clamping: count) {
            body(row.value.loadUnaligned(fromByteOffset: 8 + 8 * index, as: UInt64.self))
        }
        return count
    }

    /// The tables whose records the tree of all tables holds.
    func tables(_ main: Tree) -> [Tree] {
        var tables: [Tree] = []
        walk(main) { row in
            guard row.value.count == Tree.byteCount else {
                return findings.add("tables: row that is no table", at: "page \(row.page)")
            }
            tables.append(Tree(name: String(decoding: row.key, as: UTF8.self), bytes: row.value))
        }
        return tables
    }

    /// Visits every row of `tree` in order.
    func walk(_ tree: Tree, _ body: (Row) -> Void) {
        var counts = Counts()
        // LMDB keeps the environment's flags where this tree's are: at most the one that `DataFile` makes a file with.
        let flags = tree.content == .freePages ? tree.flags & ~UInt16(MDB_NOSUBDIR) : tree.flags
        guard flags == (tree.hasNumberKeys ? UInt16(MDB_INTEGERKEY) : 0) else {
            return findings.add("\(tree.name): impossible flags", at: "root")
        }
        if tree.root == .max {
            // LMDB counts on from here when it puts the first row.
            if tree.depth != 0 { findings.add("\(tree.name): impossible depth", at: "root") }
        } else {
            guard (1...DataFile.depthMax).contains(tree.depth) else {
                return findings.add("\(tree.name): impossible depth", at: "root")
            }
            var previous: [UInt8]?
            visit(tree.root, level: 1, tree, from: 0, bounds: (nil, nil), &previous, &counts, body)
        }
        let isAsWritten =
            counts.branchPages == tree.branchPageCount && counts.leafPages == tree.leafPageCount
            && counts.overflowPages == tree.overflowPageCount && counts.rows == tree.rowCount
        if !isAsWritten { findings.add("\(tree.name): rows or pages are missing, or too many", at: "root") }
    }
}

// MARK: - Pages

extension PageWalk {
    /// Claims the pages on the way to the first row of `tree`. There must be as many as the tree is deep.
    func claimFirstPages(of tree: Tree) {
        guard (1...DataFile.depthMax).contains(tree.depth) else {
            return findings.add("\(tree.name): impossible depth", at: "root")
        }
        var number = tree.root
        for level in 1...tree.depth {
            let isLeaf = level == tree.depth
            guard claim(number, for: tree.name, at: number) else { return }
            guard let bytes = try? file.bytes(at: number * meta.pageByteCount, count: pageByteCount) else {
                return findings.add("\(tree.name): page cannot be read", at: "page \(number)")
            }
            let next = bytes.withUnsafeBytes { bytes -> UInt64? in
                guard let page = TreePage(bytes, number: number, isLeaf: isLeaf) else { return nil }
                return isLeaf ? number : page.child(0)
            }
            guard let next else {
                return findings.add("\(tree.name): page is no \(isLeaf ? "leaf" : "branch")", at: "page \(number)")
            }
            number = next
        }
    }

    private typealias Bounds = (low: [UInt8]?, high: [UInt8]?)

    private func visit(
        _ number: UInt64, level: Int, _ tree: Tree, from parent: UInt64, bounds: Bounds, _ previous: inout [UInt8]?,
        _ counts: inout Counts, _ body: (Row) -> Void
    ) {
        guard claim(number, for: tree.name, at: parent) else { return }
        let bytes: [UInt8]
        do {
            bytes = try file.bytes(at: number * meta.pageByteCount, count: pageByteCount)
        } catch {
            return findings.add("\(tree.name): page cannot be read", at: "page \(number)")
        }
        let isLeaf = level == tree.depth
        bytes.withUnsafeBytes { bytes in
            guard let page = TreePage(bytes, number: number, isLeaf: isLeaf) else {
                return findings.add("\(tree.name): page is no \(isLeaf ? "leaf" : "branch")", at: "page \(number)")
            }
            if isLeaf {
                counts.leafPages += 1
                visitRows(page, tree, bounds, &previous, &counts, body)
            } else {
                counts.branchPages += 1
                for index in 0..<page.nodeCount {
                    // A branch's first key is not stored: the page above has it.
                    let low = index == 0 ? bounds.low : [UInt8](page.key(index))
                    let high = index + 1 < page.nodeCount ? [UInt8](page.key(index + 1)) : bounds.high
                    visit(
                        page.child(index), level: level + 1, tree, from: number, bounds: (low, high), &previous,
                        &counts, body)
                }
            }
        }
    }

    private func visitRows(
        _ page: TreePage, _ tree: Tree, _ bounds: Bounds, _ previous: inout [UInt8]?, _ counts: inout Counts,
        _ body: (Row) -> Void
    ) {
        for index in 0..<page.nodeCount {
            counts.rows += 1
            let key = page.key(index)
            let isBelowHigh =
                bounds.high?.withUnsafeBytes { isAscending([UInt8](key), $0, tree, orEqual: false) } ?? true
            let isInOrder =
                isBelowHigh && isAscending(previous, key, tree, orEqual: false)
                && isAscending(bounds.low, key, tree, orEqual: true)
            if !isInOrder { findings.add("\(tree.name): keys out of order", at: "page \(page.number)") }
            previous = [UInt8](key)
            switch (page.kind(index), tree.content) {
            case (.value, .records), (.value, .freePages), (.tree, .trees):
                body(Row(key: key, value: page.value(index), page: page.number))
            case (.bigValue, .records), (.bigValue, .freePages):
                guard let value = bigValue(page, index, tree, &counts) else { continue }
                value.withUnsafeBytes { body(Row(key: key, value: $0, page: page.number)) }
            default:
                findings.add("\(tree.name): row of a kind that is not stored here", at: "page \(page.number)")
            }
        }
    }

    /// A value that has pages of its own.
    private func bigValue(_ page: TreePage, _ index: Int, _ tree: Tree, _ counts: inout Counts) -> [UInt8]? {
        let byteCount = page.valueByteCount(index)
        let first = page.bigPage(index)
        let needed = (UInt64(byteCount) + DataFile.pageHeaderByteCount + meta.pageByteCount - 1) / meta.pageByteCount
        do {
            guard first <= meta.lastPage else {
                findings.add("\(tree.name): page number out of range", at: "page \(page.number)")
                return nil
            }
            let start = first * meta.pageByteCount
            // More than it needs, if it became shorter in the transaction that wrote it.
            let pageCount = UInt64(clamping: try file.load(UInt32.self, at: start + 12))
            guard try file.load(UInt64.self, at: start) == first,
                try file.load(UInt16.self, at: start + 10) == DataFile.PageFlag.overflow, pageCount >= needed
            else {
                findings.add("\(tree.name): page is no value", at: "page \(first)")
                return nil
            }
            guard claim(first, count: pageCount, for: tree.name, at: page.number) else { return nil }
            counts.overflowPages += pageCount
            return try file.bytes(at: start + DataFile.pageHeaderByteCount, count: byteCount)
        } catch {
            findings.add("\(tree.name): page cannot be read", at: "page \(first)")
            return nil
        }
    }

    private func isAscending(
        _ first: [UInt8]?, _ second: UnsafeRawBufferPointer, _ tree: Tree, orEqual: Bool
    ) -> Bool {
        guard let first else { return true }
        guard tree.hasNumberKeys else {
            if first.lexicographicallyPrecedes(second) { return true }
            return orEqual && first.elementsEqual(second)
        }
        guard first.count == 8, second.count == 8 else { return false }
        let one = first.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        let other = second.loadUnaligned(as: UInt64.self)
        return one < other || (orEqual && one == other)
    }
}
