internal import CLMDB

/// What a row holds in the place of a value that is too long for one page of the file. The value lies in pieces, which
/// are rows of the table `pieces` (docs/decisions/0155).
///
/// A version byte ‖ 16-byte MAC over the rest ‖ the 16-byte MAC that a short value would have ‖ the value's length
/// (4 bytes, little-endian).
struct LongValueMark {
    static let version: UInt8 = 2
    /// Not a table: the MACs of marks, and the names of pieces, are made as if it were one.
    static let tableID: UInt8 = 7
    static let byteCount = 37
    private static let bodyOffset = 17
    /// LMDB's head of a page of values (`PAGEHDRSZ`).
    static let pageHeadByteCount = 16

    /// The MAC over table, key and value.
    let tag: (UInt64, UInt64)
    let valueByteCount: Int

    init(tag: (UInt64, UInt64), valueByteCount: Int) {
        self.tag = tag
        self.valueByteCount = valueByteCount
    }

    /// Nil for a value that is not in pieces. Nothing is checked.
    private init?(unchecked stored: UnsafeRawBufferPointer) {
        guard stored.count == Self.byteCount, stored[0] == Self.version else { return nil }
        self.tag = Self.tag(in: stored, at: Self.bodyOffset)
        let count = stored.loadUnaligned(fromByteOffset: Self.bodyOffset + 16, as: UInt32.self)
        self.valueByteCount = Int(UInt32(littleEndian: count))
    }

    /// The mark in `stored`; nil if that is not a mark which was put under this key.
    static func open(
        _ stored: UnsafeRawBufferPointer, table: UInt8, key: UnsafeRawBufferPointer,
        authenticator: any RecordAuthenticator
    ) -> LongValueMark? {
        guard let mark = LongValueMark(unchecked: stored) else { return nil }
        let body = UnsafeRawBufferPointer(rebasing: stored[bodyOffset...])
        let expected = tag(of: body, table: table, key: key, authenticator)
        return tag(in: stored, at: 1) == expected ? mark : nil
    }

    /// Fills `target`, which has `byteCount` bytes.
    func seal(
        into target: UnsafeMutableRawPointer, table: UInt8, key: UnsafeRawBufferPointer,
        authenticator: any RecordAuthenticator
    ) {
        target.storeBytes(of: Self.version, as: UInt8.self)
        Self.store(tag, into: target, at: Self.bodyOffset)
        let count = UInt32(clamping: valueByteCount).littleEndian
        target.storeBytes(of: count, toByteOffset: Self.bodyOffset + 16, as: UInt32.self)
        let body = UnsafeRawBufferPointer(start: target + Self.bodyOffset, count: Self.byteCount - Self.bodyOffset)
        Self.store(Self.tag(of: body, table: table, key: key, authenticator), into: target, at: 1)
    }

    /// The MAC of a mark's body; of an empty body, the name of the row's pieces. A value has another MAC, because the
    /// table is another.
    fileprivate static func tag(
        of body: UnsafeRawBufferPointer, table: UInt8, key: UnsafeRawBufferPointer,
        _ authenticator: any RecordAuthenticator
    ) -> (UInt64, UInt64) {
        withUnsafeTemporaryAllocation(byteCount: 1 + key.count, alignment: 1) { row in
            row[0] = table
            UnsafeMutableRawBufferPointer(rebasing: row[1...]).copyMemory(from: key)
            return authenticator.tag(
                table: tableID, key: UnsafeRawBufferPointer(row), value: body)
        }
    }

    private static func tag(in stored: UnsafeRawBufferPointer, at offset: Int) -> (UInt64, UInt64) {
        let first = stored.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let second = stored.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
        return (UInt64(littleEndian: first), UInt64(littleEndian: second))
    }

    private static func store(_ tag: (UInt64, UInt64), into target: UnsafeMutableRawPointer, at offset: Int) {
        target.storeBytes(of: tag.0.littleEndian, toByteOffset: offset, as: UInt64.self)
        target.storeBytes(of: tag.1.littleEndian, toByteOffset: offset + 8, as: UInt64.self)
    }
}

extension RecordSeal {
    /// Whether `stored` is what was put under this key: a value, or the mark of a long one.
    static func isGenuine(
        _ stored: UnsafeRawBufferPointer, table: UInt8, key: UnsafeRawBufferPointer,
        authenticator: any RecordAuthenticator
    ) -> Bool {
        if open(stored, table: table, key: key, authenticator: authenticator) != nil { return true }
        return LongValueMark.open(stored, table: table, key: key, authenticator: authenticator) != nil
    }
}

/// The keys of a row's pieces: the row's name ‖ index (4 bytes, big-endian).
struct PieceKey {
    static let nameByteCount = 16

    private(set) var bytes: [UInt8] = []

    /// What the keys of all pieces of the row begin with.
    var name: [UInt8] { Array(bytes.prefix(Self.nameByteCount)) }

    init(ofRow key: UnsafeRawBufferPointer, in table: UInt8, _ authenticator: any RecordAuthenticator) {
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        let name = LongValueMark.tag(of: nothing, table: table, key: key, authenticator)
        for half in [name.0, name.1] { withUnsafeBytes(of: half.littleEndian) { bytes.append(contentsOf: $0) } }
        bytes.append(bigEndian: UInt32(0))
    }

    mutating func move(to index: Int) {
        bytes.removeLast(4)
        // Proof of the range: LMDB's file has fewer pages.
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: index))
    }
}

/// What is known of a stored row before it is replaced or deleted.
struct StoredRow {
    /// The length for which a tenant's usage counts the row. It may be wrong if the row is damaged.
    let byteCount: Int
    /// The mark of a long value. It is genuine.
    let mark: LongValueMark?
    /// Whether the row is neither a short value nor a genuine mark, so that its length is not known, and whether it has
    /// pieces. A damaged short value may pass for a short value.
    let isDamaged: Bool

    var mayHavePieces: Bool { mark != nil || isDamaged }
}
