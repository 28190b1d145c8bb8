internal import CLMDB
import Synchronization

// How long values are put in pieces and put together again (docs/decisions/0155).

// MARK: - Reading

extension ReadTransaction {
    /// The value whose row holds the mark `stored`. Throws `.corrupt` if it is not what was put under the key.
    func longValue(
        _ stored: UnsafeRawBufferPointer, tableID: UInt8, key: UnsafeRawBufferPointer
    ) throws(StoreError) -> UnsafeRawBufferPointer {
        guard let mark = mark(in: stored, tableID: tableID, key: key),
            let value = try join(mark, tableID: tableID, key: key)
        else { throw corrupt(tableID) }
        guard environment.authenticator.tag(table: tableID, key: key, value: value) == mark.tag else {
            longValues.remove(value)
            throw corrupt(tableID)
        }
        return value
    }

    private func mark(
        in stored: UnsafeRawBufferPointer, tableID: UInt8, key: UnsafeRawBufferPointer
    ) -> LongValueMark? {
        LongValueMark.open(stored, table: tableID, key: key, authenticator: environment.authenticator)
    }

    /// Nil if a piece is missing. The bytes are not checked.
    private func join(
        _ mark: LongValueMark, tableID: UInt8, key: UnsafeRawBufferPointer
    ) throws(StoreError) -> UnsafeRawBufferPointer? {
        guard environment.tables.isOpen(Schema.pieces.id) else { return nil }
        let target = longValues.add(byteCount: mark.valueByteCount)
        let value = UnsafeRawBufferPointer(target)
        var pieceKey = PieceKey(ofRow: key, in: tableID, environment.authenticator)
        var filled = 0
        var index = 0
        while filled < target.count {
            pieceKey.move(to: index)
            guard let piece = try piece(pieceKey), !piece.isEmpty, piece.count <= target.count - filled else {
                longValues.remove(value)
                return nil
            }
            UnsafeMutableRawBufferPointer(rebasing: target[filled...]).copyMemory(from: piece)
            filled += piece.count
            index += 1
        }
        return value
    }

    private func piece(_ key: PieceKey) throws(StoreError) -> UnsafeRawBufferPointer? {
        var value = MDB_val()
        let code = key.bytes.span.withUnsafeBytes { bytes in
            var keyValue = MDB_val(borrowing: bytes)
            return mdb_get(raw, environment.tables.handle(of: Schema.pieces.id), &keyValue, &value)
        }
        if code == MDB_NOTFOUND { return nil }
        try StoreError.check(code, "mdb_get")
        let stored = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        return UnsafeRawBufferPointer(rebasing: stored.dropFirst(RecordSeal.byteCount))
    }

    /// What is known of a row that is replaced, deleted or counted. A short value is not checked.
    func storedRow(_ value: MDB_val, tableID: UInt8, key: UnsafeRawBufferPointer) -> StoredRow {
        let stored = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        if stored.first == RecordSeal.version {
            return StoredRow(byteCount: stored.count, mark: nil, isDamaged: false)
        }
        guard let mark = mark(in: stored, tableID: tableID, key: key) else {
            return StoredRow(byteCount: stored.count, mark: nil, isDamaged: true)
        }
        return StoredRow(byteCount: RecordSeal.byteCount + mark.valueByteCount, mark: mark, isDamaged: false)
    }

    /// Calls `body` with the tenant of the row, and the length for which the row counts. Does nothing if the row is no
    /// tenant's. A damaged row counts, too, unless damage hides its tenant: then it returns false.
    func withCounted(
        _ value: MDB_val, _ row: StoredRow, of owner: RowOwner, tableID: UInt8, key: UnsafeRawBufferPointer,
        _ body: (_ tenant: UnsafeRawBufferPointer, _ byteCount: Int) -> Void
    ) -> Bool {
        guard owner != .nobody else { return true }
        if owner.isKeyPrefix {
            let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
            if let tenant = owner.tenant(key: key, payload: nothing) { body(tenant, row.byteCount) }
            return true
        }
        guard let payload = try? verified(value, tableID: tableID, key: key) else { return false }
        if let tenant = owner.tenant(key: key, payload: payload) { body(tenant, row.byteCount) }
        endUse(of: payload)
        return true
    }

    /// The number of pieces that the long values of a table have. Calls `onDamage` for each value that is not whole.
    func countPieces(of tableID: UInt8, onDamage: () -> Void) throws(StoreError) -> Int {
        let cursor = try Cursor(self, tableID: tableID)
        var count = 0
        var entry = try cursor.move(MDB_FIRST)
        while let (key, value) = entry {
            if storedRow(value, tableID: tableID, key: key).mayHavePieces {
                if let payload = try? verified(value, tableID: tableID, key: key) {
                    count += environment.pieceCount(ofByteCount: payload.count)
                    endUse(of: payload)
                } else {
                    onDamage()
                }
            }
            entry = try cursor.move(MDB_NEXT)
        }
        return count
    }
}

// MARK: - Writing

extension Environment {
    /// Whether the value, with its MAC, takes more than one page of the file.
    @inline(__always)
    func isLong(_ payload: UnsafeRawBufferPointer) -> Bool {
        payload.count > pieceByteCountMax && storesPieces.load(ordering: .relaxed)
    }

    /// The number of pieces of a long value.
    func pieceCount(ofByteCount byteCount: Int) -> Int {
        (byteCount + pieceByteCountMax - 1) / pieceByteCountMax
    }
}

extension WriteTransaction {
    /// Puts a row's value in pieces, each in one page of its own, in place of the pieces that the row has. The writer
    /// never needs pages that lie side by side, for which LMDB would look through all free pages.
    ///
    /// - Parameters:
    ///   - payload: Empty for a value that is not long.
    ///   - former: What the row held; nil for a new row.
    func replacePieces(
        ofRow key: UnsafeRawBufferPointer, in tableID: UInt8, with payload: UnsafeRawBufferPointer,
        former: StoredRow?
    ) throws(StoreError) {
        let environment = reading.environment
        guard environment.tables.isOpen(Schema.pieces.id) else { return }
        let before = try reading.count(tableID: Schema.pieces.id)
        var pieceKey = PieceKey(ofRow: key, in: tableID, environment.authenticator)
        if !payload.isEmpty { environment.mending.use(pieceKey) }
        var index = 0
        var rest = payload[...]
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(environment.pieceByteCountMax))
            rest = rest.dropFirst(piece.count)
            pieceKey.move(to: index)
            try pieceKey.bytes.span.withUnsafeBytes { bytes throws(StoreError) in try put(piece, under: bytes) }
            index += 1
        }
        pieceKey.move(to: index)
        try deletePieces(from: index == 0 ? pieceKey.name : pieceKey.bytes)
        // A piece whose key is damaged does not lie where the row's pieces are.
        let formerCount = former?.mark.map { environment.pieceCount(ofByteCount: $0.valueByteCount) } ?? 0
        let after = try reading.count(tableID: Schema.pieces.id)
        if former?.isDamaged == true || after - before != index - formerCount { batch.foundDamage() }
    }

    private func put(_ piece: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer) throws(StoreError) {
        let environment = reading.environment
        let tag = environment.authenticator.tag(table: Schema.pieces.id, key: key, value: piece)
        var keyValue = MDB_val(borrowing: key)
        var value = MDB_val(mv_size: RecordSeal.byteCount + piece.count, mv_data: nil)
        let handle = environment.tables.handle(of: Schema.pieces.id)
        try batch.check(mdb_put(reading.raw, handle, &keyValue, &value, UInt32(MDB_RESERVE)), "mdb_put")
        RecordSeal.seal(piece, into: value.mv_data, tag: tag)
    }

    /// Deletes the pieces of one row whose keys are not below `first`: a row's name, or the key of one of its pieces.
    /// Pieces in between may be missing.
    func deletePieces(from first: [UInt8]) throws(StoreError) {
        let name = first.prefix(PieceKey.nameByteCount)
        let cursor = try Cursor(reading, tableID: Schema.pieces.id)
        while true {
            let found = try first.span.withUnsafeBytes { bytes throws(StoreError) in
                try cursor.move(MDB_SET_RANGE, to: bytes)
            }
            guard let found, found.key.starts(with: name) else { return }
            try batch.check(cursor.delete(), "mdb_cursor_del")
        }
    }
}
