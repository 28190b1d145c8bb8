internal import CLMDB

// How a row is put and deleted.

extension WriteTransaction {
    @usableFromInline
    func put(
        tableID: UInt8, key: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer, ifAbsent: Bool
    ) throws(StoreError) -> Bool {
        guard !key.isEmpty else { throw .keySize }
        batch.assertChangeable()
        let environment = reading.environment
        let tag = environment.authenticator.tag(table: tableID, key: key, value: payload)
        let handle = environment.tables.handle(of: tableID)
        let owner = environment.tables.owner(of: tableID)
        let byteCount = RecordSeal.byteCount + payload.count
        let isLong = environment.isLong(payload)
        let storedByteCount = isLong ? LongValueMark.byteCount : byteCount
        var keyValue = MDB_val(borrowing: key)
        var value = MDB_val(mv_size: storedByteCount, mv_data: nil)
        // A put that must not replace tells for free whether the row is new and, if not, how long the present row is
        // and whether it has pieces.
        var code = mdb_put(reading.raw, handle, &keyValue, &value, UInt32(MDB_RESERVE) | UInt32(MDB_NOOVERWRITE))
        var replaced: StoredRow?
        if code == MDB_KEYEXIST {
            if ifAbsent { return false }
            replaced = reading.storedRow(value, tableID: tableID, key: key)
            value = MDB_val(mv_size: storedByteCount, mv_data: nil)
            code = mdb_put(reading.raw, handle, &keyValue, &value, UInt32(MDB_RESERVE))
        }
        try batch.checkChange(code, "mdb_put")
        if isLong {
            let mark = LongValueMark(tag: tag, valueByteCount: payload.count)
            mark.seal(into: value.mv_data, table: tableID, key: key, authenticator: environment.authenticator)
        } else {
            RecordSeal.seal(payload, into: value.mv_data, tag: tag)
        }
        if isLong || replaced?.mayHavePieces == true {
            let pieces = isLong ? payload : UnsafeRawBufferPointer(start: nil, count: 0)
            try replacePieces(ofRow: key, in: tableID, with: pieces, former: replaced)
        }
        batch.note(tableID, key, payload)
        announce(tableID, key)
        if let tenant = owner.tenant(key: key, payload: payload) {
            batch.usage.put(
                tenant: tenant, owner: owner, key: key, byteCount: byteCount, replacing: replaced?.byteCount)
            if replaced?.isDamaged == true { batch.usage.makeUncertain(tenant) }
        }
        return true
    }

    /// Announces a changed row as the table's declaration says.
    private func announce(_ tableID: UInt8, _ key: UnsafeRawBufferPointer) {
        let environment = reading.environment
        if let topic = environment.tables.topic(ofRow: key, in: tableID) { batch.announce(topic) }
        if environment.tables.marksRows(of: tableID) { batch.mark(MarkedRow(tableID: tableID, key: key)) }
    }

    @usableFromInline
    func delete(tableID: UInt8, key: UnsafeRawBufferPointer) throws(StoreError) -> Bool {
        guard !key.isEmpty else { throw .keySize }
        batch.assertChangeable()
        let handle = reading.environment.tables.handle(of: tableID)
        let owner = reading.environment.tables.owner(of: tableID)
        var keyValue = MDB_val(borrowing: key)
        var value = MDB_val()
        let found = mdb_get(reading.raw, handle, &keyValue, &value)
        if found == MDB_NOTFOUND { return false }
        try StoreError.check(found, "mdb_get")
        // Before the delete, which moves what the pointers point to. A deleted record does not have to be genuine.
        let row = reading.storedRow(value, tableID: tableID, key: key)
        var deleted: TenantUsage?
        let isCounted = reading.withCounted(value, row, of: owner, tableID: tableID, key: key) { tenant, byteCount in
            deleted = batch.usage.use(of: tenant, owner: owner, key: key, byteCount: byteCount)
            if row.isDamaged { batch.usage.makeUncertain(tenant) }
        }
        if !isCounted { batch.foundDamage() }
        try batch.checkChange(mdb_del(reading.raw, handle, &keyValue, nil), "mdb_del")
        if row.mayHavePieces {
            try replacePieces(ofRow: key, in: tableID, with: .init(start: nil, count: 0), former: row)
        }
        batch.note(tableID, key, nil)
        announce(tableID, key)
        if let deleted { batch.usage.subtract(deleted) }
        return true
    }
}
