/// A place in the journal: how many entries there are up to it, and the hash over all of them.
///
/// Two stores with the same mark hold the same data. Entry 0 is the snapshot that the cluster began with.
public struct JournalMark: Hashable, Sendable {
    public let position: UInt64
    public let hash: JournalHash

    public init(position: UInt64, hash: JournalHash) {
        self.position = position
        self.hash = hash
    }
}

/// A hash over an entry and all before it: 32 bytes.
public struct JournalHash: Hashable, Sendable {
    public let words: SIMD4<UInt64>

    public init(_ words: SIMD4<UInt64>) { self.words = words }

    /// Nil unless there are 32 bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        self.words = withUnsafeTemporaryAllocation(byteCount: 32, alignment: 32) { scratch in
            scratch.copyBytes(from: bytes)
            return scratch.load(as: SIMD4<UInt64>.self)
        }
    }

    public var bytes: [UInt8] { withUnsafeBytes(of: words) { [UInt8]($0) } }
}

/// A random name for one try to append: by it, a node finds its own entry again if no answer came. 16 bytes.
public struct BatchID: Hashable, Sendable {
    public let words: SIMD2<UInt64>

    public init(_ words: SIMD2<UInt64>) { self.words = words }

    /// Nil unless there are 16 bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        self.words = withUnsafeTemporaryAllocation(byteCount: 16, alignment: 16) { scratch in
            scratch.copyBytes(from: bytes)
            return scratch.load(as: SIMD2<UInt64>.self)
        }
    }

    public var bytes: [UInt8] { withUnsafeBytes(of: words) { [UInt8]($0) } }
}

/// The head of a row of the journal, without the row's changes.
public struct JournalHead: Hashable, Sendable {
    public let mark: JournalMark
    /// The hash of the row before it: a row fits over one state only.
    public let previousHash: JournalHash
    public let batchID: BatchID

    public init(mark: JournalMark, previousHash: JournalHash, batchID: BatchID) {
        self.mark = mark
        self.previousHash = previousHash
        self.batchID = batchID
    }

    func follows(_ other: JournalHead) -> Bool {
        mark.position == other.mark.position + 1 && previousHash == other.mark.hash
    }
}
