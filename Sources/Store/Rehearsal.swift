internal import CLMDB

extension Writer {
    /// For tests; does nothing otherwise. Runs the bodies of `part` over a state that is gone when they run for good.
    func rehearse(_ part: ArraySlice<WriteRequest>) throws(StoreError) {
        guard let beforeRerun = environment.configuration.beforeRerun else { return }
        let included = part.filter { !$0.isExcluded }
        var raw = try begin()
        _ = try? run(part, in: WriteTransaction(raw: raw, environment: environment, batch: batch))
        mdb_txn_abort(raw)
        for request in included { request.isExcluded = false }
        raw = try begin()
        do throws(StoreError) {
            let others = WriteTransaction(raw: raw, environment: environment, batch: batch)
            try beforeRerun(others)
            try others.finishBatch()
        } catch {
            mdb_txn_abort(raw)
            throw error
        }
        let snapshot = Snapshot(of: raw)
        try StoreError.check(mdb_txn_commit(raw), "mdb_txn_commit")
        environment.announce(batch.topics, batch.rows, in: snapshot)
    }
}
