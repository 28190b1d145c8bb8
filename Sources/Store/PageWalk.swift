/// Reads every page of a data file that is in use, by pread(2), and checks it against LMDB's format (mdb.c of 0.9). A
/// damaged page is a finding here; through LMDB's mapping it would be a fault.
///
/// A page must state its own number and kind, be used once, and hold its keys in order and within the bounds that the
/// pages above give. A tree must have the depth and the counts that its record states.
final class PageWalk {
    /// A tree's record in LMDB (`MDB_db`, 48 bytes).
    struct Tree {
        static let byteCount = 48

        var name: String
        var depth: Int
        var branchPageCount: UInt64
        var leafPageCount: UInt64
        var overflowPageCount: UInt64
        var rowCount: UInt64
        var root: UInt64
        /// Whether keys are numbers of 8 bytes in this machine's order, as in the list of free pages.
        var hasNumberKeys = false

        init(name: String, bytes: UnsafeRawBufferPointer) {
            func number<Number: FixedWidthInteger>(_: Number.Type, _ offset: Int) -> Number {
                Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
            }
            self.name = name
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
        /// `value` is a `Tree`.
        var isTree: Bool
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
            var free = Tree(name: "free pages", bytes: UnsafeRawBufferPointer(rebasing: bytes[..<Tree.byteCount]))
            free.hasNumberKeys = true
            return (free, Tree(name: "tables", bytes: UnsafeRawBufferPointer(rebasing: bytes[Tree.byteCount...])))
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

    /// Visits every row of `tree` in order.
    func walk(_ tree: Tree, _ body: (Row) -> Void) {
        var counts = Counts()
        if tree.root != .max {
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
            guard let page = Page(bytes, number: number, isLeaf: isLeaf) else {
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
        _ page: Page, _ tree: Tree, _ bounds: Bounds, _ previous: inout [UInt8]?, _ counts: inout Counts,
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
            guard page.isBig(index) else {
                guard let value = page.value(index) else {
                    findings.add("\(tree.name): row leaves its page", at: "page \(page.number)")
                    continue
                }
                body(Row(key: key, value: value, isTree: page.isTree(index), page: page.number))
                continue
            }
            guard let value = bigValue(page, index, tree, &counts) else { continue }
            value.withUnsafeBytes { body(Row(key: key, value: $0, isTree: false, page: page.number)) }
        }
    }

    /// A value that has pages of its own.
    private func bigValue(_ page: Page, _ index: Int, _ tree: Tree, _ counts: inout Counts) -> [UInt8]? {
        let byteCount = page.valueByteCount(index)
        guard let first = page.bigPage(index) else {
            findings.add("\(tree.name): row leaves its page", at: "page \(page.number)")
            return nil
        }
        let pageCount = (UInt64(byteCount) + DataFile.pageHeaderByteCount + meta.pageByteCount - 1) / meta.pageByteCount
        guard claim(first, count: pageCount, for: tree.name, at: page.number) else { return nil }
        counts.overflowPages += pageCount
        do {
            let start = first * meta.pageByteCount
            guard try file.load(UInt64.self, at: start) == first,
                try file.load(UInt16.self, at: start + 10) & DataFile.PageFlag.overflow != 0
            else {
                findings.add("\(tree.name): page is no value", at: "page \(first)")
                return nil
            }
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

/// A branch or a leaf whose nodes lie within it.
private struct Page {
    private static let nodeHeaderByteCount = 8

    let number: UInt64
    let nodeCount: Int
    private let bytes: UnsafeRawBufferPointer

    init?(_ bytes: UnsafeRawBufferPointer, number: UInt64, isLeaf: Bool) {
        func number16(_ offset: Int) -> Int { Int(bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)) }
        let kind = Int(truncatingIfNeeded: isLeaf ? DataFile.PageFlag.leaf : DataFile.PageFlag.branch)
        let (lower, upper) = (number16(12), number16(14))
        guard bytes.loadUnaligned(as: UInt64.self) == number, number16(10) & 0x6F == kind, lower >= 16,
            lower & 1 == 0, lower <= upper, upper <= bytes.count
        else { return nil }
        let nodeCount = (lower - 16) / 2
        guard nodeCount >= (isLeaf ? 1 : 2) else { return nil }
        for index in 0..<nodeCount {
            let node = number16(16 + 2 * index)
            guard node >= upper, node + Self.nodeHeaderByteCount <= bytes.count,
                node + Self.nodeHeaderByteCount + number16(node + 6) <= bytes.count
            else { return nil }
        }
        self.number = number
        self.nodeCount = nodeCount
        self.bytes = bytes
    }

    private func number16(_ offset: Int) -> Int { Int(bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)) }
    private func node(_ index: Int) -> Int { number16(16 + 2 * index) }
    private func flags(_ index: Int) -> Int { number16(node(index) + 4) }

    func key(_ index: Int) -> UnsafeRawBufferPointer {
        let start = node(index) + Self.nodeHeaderByteCount
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + number16(node(index) + 6)])
    }

    /// The child of a branch's node.
    func child(_ index: Int) -> UInt64 { UInt64(clamping: valueByteCount(index) | flags(index) << 32) }

    func isBig(_ index: Int) -> Bool { flags(index) & 1 != 0 }
    func isTree(_ index: Int) -> Bool { flags(index) & 2 != 0 }
    func valueByteCount(_ index: Int) -> Int { number16(node(index)) | number16(node(index) + 2) << 16 }

    private func valueStart(_ index: Int) -> Int { node(index) + Self.nodeHeaderByteCount + number16(node(index) + 6) }

    func value(_ index: Int) -> UnsafeRawBufferPointer? {
        let start = valueStart(index)
        guard valueByteCount(index) <= bytes.count - start else { return nil }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + valueByteCount(index)])
    }

    func bigPage(_ index: Int) -> UInt64? {
        let start = valueStart(index)
        guard start + 8 <= bytes.count else { return nil }
        return bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)
    }
}
