import Base

extension Store {
    static let witnessKey = [UInt8]("witness".utf8)

    /// Compares the store with its witness and goes on with the witness, or makes one for a store that never had any.
    /// If it returns a disagreement, the store has no witness until `acceptRollback`.
    func compareWithWitness() throws -> Rollback? {
        let environment = environment
        let found = try Witness.read(environment.configuration.directory, authenticator: environment.authenticator)
        let (storeID, event) = try readIdentity()
        environment.noteEvent(event)
        if let rollback = Rollback(storeID: storeID, environment.metaAtStart, event: event, found) { return rollback }
        if let storeID {
            environment.setWitness(
                try Witness(
                    reopening: environment.configuration.directory, storeID: storeID,
                    authenticator: environment.authenticator, failures: counters.witnessFailures))
        } else {
            // The file is written before the row, so that a row proves that there was a file.
            let storeID = try beginWitness()
            do {
                try writeBlocking { try $0.put(Schema.meta, Self.witnessKey, storeID) }
            } catch StoreError.full {
                // A full store from before there were witnesses is served all the same; the next start tries again.
            }
        }
        return nil
    }

    /// Begins a new witness for the store as it is, with a new id: earlier data files do not match it. `record` writes
    /// the event, in the same transaction.
    public func acceptRollback(_ record: @escaping @Sendable (borrowing WriteTransaction) throws -> Void) async throws {
        let storeID = try beginWitness()
        // An operator who accepts a rollback of a full store wants to make room in it.
        try await write(for: .removal) { transaction in
            try transaction.put(Schema.meta, Self.witnessKey, storeID)
            try record(transaction)
        }
        forgetRollback()
    }

    /// A new witness with a new id, which has to be put into the store.
    private func beginWitness() throws(StoreError) -> [UInt8] {
        let storeID = environment.configuration.random.bytes(Witness.storeIDByteCount)
        environment.setWitness(
            try Witness(
                directory: environment.configuration.directory, storeID: storeID,
                position: try environment.position(), authenticator: environment.authenticator,
                failures: counters.witnessFailures))
        return storeID
    }

    /// The id by which the witness knows the store, and the number of the newest event.
    private func readIdentity() throws -> (storeID: [UInt8]?, event: UInt64) {
        let (storeID, event) = try writeBlocking {
            (try $0.get(Schema.meta, Self.witnessKey), try $0.reading.newestEvent())
        }
        guard let storeID else { return (nil, event) }
        guard storeID.count == Witness.storeIDByteCount else { throw StoreError.corrupt(table: "meta") }
        return (storeID, event)
    }
}

extension Environment {
    /// Throws `.rolledBack` for a store that is refused because its witness contradicts it, before anything is written.
    ///
    /// Opening a store may write to it: a new table, a step of an upgrade. That transaction would take the number of
    /// the one that is missing, and the next start would find nothing wrong.
    func requireWitness() throws(StoreError) {
        let mayBeBehind = configuration.acceptsRollback || configuration.durability == .relaxed
        // What a cluster's node lost is in the journal, which is read first. A first start that was killed leaves a
        // file without tables.
        guard !mayBeBehind, configuration.journal == nil, tables.isOpen(Schema.meta.id) else { return }
        let rollback = try Store.throwingStoreErrors { () throws -> Rollback? in
            let found = try Witness.read(configuration.directory, authenticator: authenticator)
            return try ThreadReaders.reader(for: self).read { transaction in
                try transaction.requireKnownSchema()
                return Rollback(
                    storeID: try transaction.get(Schema.meta, Store.witnessKey), metaAtStart,
                    event: try transaction.newestEvent(), found)
            }
        }
        if let rollback { throw .rolledBack(rollback) }
    }
}

extension Rollback {
    /// Nil if the store agrees with its witness, and its meta pages with each other.
    ///
    /// - Parameters:
    ///   - storeID: The id in the store's row.
    ///   - meta: As it was before this process wrote anything. A transaction of our own, such as an upgrade, would be
    ///     taken for the one that is missing, and overwrites the other meta page.
    ///   - event: The newest one.
    init?(storeID: [UInt8]?, _ meta: DataFile.Meta, event: UInt64, _ found: Witness.Reading) {
        let rollback =
            switch (storeID, found) {
            // If a first start ends before it puts the row, it leaves a witness that is not ahead.
            case (nil, .found(_, let witness)): Self.behind(meta, event, witness)
            // A store of a server that wrote no witness yet.
            case (nil, _): Self.apart(meta, nil)
            case (_, .missing), (_, .unreadable): Rollback.witnessMissing
            case (let storeID?, .found(let id, let witness)):
                id == storeID ? Self.behind(meta, event, witness) : .witnessForeign
            }
        guard let rollback else { return nil }
        self = rollback
    }

    private static func behind(_ meta: DataFile.Meta, _ event: UInt64, _ witness: Witness.Position) -> Rollback? {
        if meta.transactionID < witness.transaction {
            return .behind(store: meta.transactionID, witness: witness.transaction)
        }
        if event < witness.event { return .eventsBehind(store: event, witness: witness.event) }
        return apart(meta, witness)
    }

    /// The witness has a MAC. If it names the newest page's transaction, the damage is in the other page.
    private static func apart(_ meta: DataFile.Meta, _ witness: Witness.Position?) -> Rollback? {
        let (newest, other) = (meta.transactionID, meta.otherTransactionID)
        guard !meta.isNextToOther, newest != witness?.transaction || newest == other else { return nil }
        return .metaPagesApart(newest: newest, other: other)
    }
}
