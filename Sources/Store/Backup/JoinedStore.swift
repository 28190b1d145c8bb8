import Base
internal import CLMDB

extension Store {
    /// Turns a copy of another node's data file into the store of a new node, and returns its place in the journal.
    ///
    /// The parts that each store has for itself begin anew: its witness, and the id by which the witness knows it.
    /// Everything else is as in the other node's store, including the epoch and the place in the journal. Nothing is
    /// upgraded, and no event is written, because other nodes would not learn of it.
    @available(*, noasync, message: "blocks the thread")
    public static func adopt(
        _ configuration: StoreConfiguration, authenticator: any RecordAuthenticator, eventHash: @escaping EventHash
    ) throws(StoreError) -> JournalPlace {
        var configuration = configuration
        configuration.createsIfMissing = false
        configuration.durability = .synced
        let environment = try Environment(configuration, authenticator: authenticator, eventHash: eventHash)
        defer { environment.close() }
        try environment.tables.open(in: environment.raw, makingMissing: true)
        let storeID = configuration.random.bytes(Witness.storeIDByteCount)
        let raw = try LMDB.beginTransaction(in: environment.raw)
        let (place, event): (JournalPlace, UInt64)
        do throws(StoreError) {
            (place, event) = try rename(raw, environment, to: storeID)
        } catch {
            mdb_txn_abort(raw)
            throw error
        }
        try StoreError.check(mdb_txn_commit(raw), "mdb_txn_commit")
        environment.noteEvent(event)
        environment.setWitness(
            try Witness(
                directory: configuration.directory, storeID: storeID, position: try environment.position(),
                authenticator: authenticator, failures: Counter()))
        return place
    }

    private static func rename(
        _ raw: OpaquePointer, _ environment: Environment, to storeID: [UInt8]
    ) throws(StoreError) -> (JournalPlace, event: UInt64) {
        let batch = WriteBatch(isRecording: false)
        batch.begin(isRecording: false)
        // A transaction does not keep its batch.
        defer { withExtendedLifetime(batch) {} }
        let transaction = WriteTransaction(raw: raw, environment: environment, batch: batch)
        try transaction.reading.requireKnownSchema()
        guard let place = try transaction.reading.journalPlace() else { throw .journal(.notJoined) }
        try transaction.put(Schema.meta, witnessKey, storeID)
        return (place, try transaction.reading.newestEvent())
    }
}
