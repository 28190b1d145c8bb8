/// A branch or a leaf whose nodes lie within it, side by side.
struct TreePage {
    /// `MDB_MAXKEYSIZE`.
    private static let keyByteCountMax = 511
    private static let nodeHeaderByteCount = 8

    /// The kinds of content of a leaf's node, by its flags (`F_BIGDATA`, `F_SUBDATA`).
    enum Kind: Int {
        case value = 0
        case bigValue = 1
        case tree = 2
    }

    let number: UInt64
    let nodeCount: Int
    private let isLeaf: Bool
    private let bytes: UnsafeRawBufferPointer

    init?(_ bytes: UnsafeRawBufferPointer, number: UInt64, isLeaf: Bool) {
        self.number = number
        self.isLeaf = isLeaf
        self.bytes = bytes
        func number16(_ offset: Int) -> Int { Int(bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)) }
        let kind = Int(truncatingIfNeeded: isLeaf ? DataFile.PageFlag.leaf : DataFile.PageFlag.branch)
        let (lower, upper) = (number16(12), number16(14))
        guard bytes.loadUnaligned(as: UInt64.self) == number, number16(10) == kind, lower >= 16,
            lower & 1 == 0, lower <= upper, upper <= bytes.count
        else { return nil }
        self.nodeCount = (lower - 16) / 2
        guard nodeCount >= (isLeaf ? 1 : 2) else { return nil }
        var extents: [(start: Int, end: Int)] = []
        for index in 0..<nodeCount {
            let node = node(index)
            guard node >= upper, node & 1 == 0, node + Self.nodeHeaderByteCount <= bytes.count,
                keyByteCount(index) <= Self.keyByteCountMax, !isLeaf || Kind(rawValue: flags(index)) != nil
            else { return nil }
            let byteCount = nodeByteCount(index)
            guard byteCount <= bytes.count - node else { return nil }
            extents.append((node, node + byteCount + byteCount & 1))
        }
        // Nodes lie side by side up to the page's end.
        extents.sort { $0.start < $1.start }
        var end = upper
        for extent in extents {
            guard extent.start == end else { return nil }
            end = extent.end
        }
        guard end == bytes.count else { return nil }
    }

    private func number16(_ offset: Int) -> Int { Int(bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)) }
    private func node(_ index: Int) -> Int { number16(16 + 2 * index) }
    private func flags(_ index: Int) -> Int { number16(node(index) + 4) }
    private func keyByteCount(_ index: Int) -> Int { number16(node(index) + 6) }
    private func valueStart(_ index: Int) -> Int { node(index) + Self.nodeHeaderByteCount + keyByteCount(index) }

    /// A branch's node ends with its key; a big value's, with the number of its first page.
    private func nodeByteCount(_ index: Int) -> Int {
        let keyEnd = valueStart(index) - node(index)
        guard isLeaf else { return keyEnd }
        return keyEnd + (kind(index) == .bigValue ? MemoryLayout<UInt64>.size : valueByteCount(index))
    }

    func key(_ index: Int) -> UnsafeRawBufferPointer {
        let start = node(index) + Self.nodeHeaderByteCount
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + keyByteCount(index)])
    }

    /// The child of a branch's node.
    func child(_ index: Int) -> UInt64 { UInt64(clamping: valueByteCount(index) | flags(index) << 32) }

    /// The kind of a leaf's node. Nil: LMDB has no such kind, or the store does not use it.
    func kind(_ index: Int) -> Kind? { Kind(rawValue: flags(index)) }

    func valueByteCount(_ index: Int) -> Int { number16(node(index)) | number16(node(index) + 2) << 16 }

    func value(_ index: Int) -> UnsafeRawBufferPointer {
        let start = valueStart(index)
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + valueByteCount(index)])
    }

    func bigPage(_ index: Int) -> UInt64 {
        bytes.loadUnaligned(fromByteOffset: valueStart(index), as: UInt64.self)
    }
}
