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

    /// Calls `body` with the tenant of the row, and the length for which the row counts. Does nothing if the
    /// row belongs to no tenant. The row does not have to be genuine.
    func withCounted(
        _ value: MDB_val, of owner: RowOwner, tableID: UInt8, key: UnsafeRawBufferPointer,
        _ body: (_ tenant: UnsafeRawBufferPointer, _ byteCount: Int) -> Void
    ) {
        guard owner != .nobody else { return }
        let stored = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        var payload = UnsafeRawBufferPointer(rebasing: stored.dropFirst(RecordSeal.byteCount))
        var joined: UnsafeRawBufferPointer?
        if !owner.isKeyPrefix, let mark = mark(in: stored, tableID: tableID, key: key) {
            joined = (try? join(mark, tableID: tableID, key: key)) ?? nil
            guard let joined else { return }
            payload = joined
        }
        if let tenant = owner.tenant(key: key, payload: payload) { body(tenant, StoredLength(value).byteCount) }
        if let joined { endUse(of: joined) }
    }

    /// The number of pieces that the long values of a table have. Calls `onDamage` for each value that is not whole.
    func countPieces(of tableID: UInt8, onDamage: () -> Void) throws(StoreError) -> Int {
        let cursor = try Cursor(self, tableID: tableID)
        var count = 0
        var entry = try cursor.move(MDB_FIRST)
        while let (key, value) = entry {
            if StoredLength(value).isInPieces {
                if let payload = try? verified(value, tableID: tableID, key: key) {
                    let longest = environment.pieceByteCountMax
                    count += (payload.count + longest - 1) / longest
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
}

extension WriteTransaction {
    /// Puts a row's value in pieces, each in one page of its own, in place of the pieces that the row has. The writer
    /// never needs pages that lie side by side, for which LMDB would look through all free pages.
    func replacePieces(
        ofRow key: UnsafeRawBufferPointer, in tableID: UInt8, with payload: UnsafeRawBufferPointer
    ) throws(StoreError) {
        var pieceKey = PieceKey(ofRow: key, in: tableID, reading.environment.authenticator)
        var index = 0
        var rest = payload[...]
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(reading.environment.pieceByteCountMax))
            rest = rest.dropFirst(piece.count)
            pieceKey.move(to: index)
            try pieceKey.bytes.span.withUnsafeBytes { bytes throws(StoreError) in try put(piece, under: bytes) }
            index += 1
        }
        try deletePieces(pieceKey, from: index)
    }

    func deletePieces(ofRow key: UnsafeRawBufferPointer, in tableID: UInt8) throws(StoreError) {
        try deletePieces(PieceKey(ofRow: key, in: tableID, reading.environment.authenticator), from: 0)
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

    /// Deletes the pieces from `index` on, up to the first that is not there: the row's mark may be damaged.
    private func deletePieces(_ first: PieceKey, from index: Int) throws(StoreError) {
        var pieceKey = first
        var index = index
        while true {
            pieceKey.move(to: index)
            let code = pieceKey.bytes.span.withUnsafeBytes { bytes in
                var keyValue = MDB_val(borrowing: bytes)
                return mdb_del(reading.raw, reading.environment.tables.handle(of: Schema.pieces.id), &keyValue, nil)
            }
            if code == MDB_NOTFOUND { return }
            try batch.check(code, "mdb_del")
            index += 1
        }
    }
}
