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
        if let rollback = Rollback(storeID: storeID, try environment.position(), found) { return rollback }
        if let rollback = try Rollback(metaPagesIn: environment.configuration.directory) { return rollback }
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

extension Rollback {
    /// Nil if the store, at `position` and with the id in its row, agrees with its witness.
    init?(storeID: [UInt8]?, _ position: Witness.Position, _ found: Witness.Reading) {
        switch (storeID, found) {
        case (nil, .found(_, let witness)):
            // If a first start ends before it puts the row, it leaves a witness that is not ahead.
            guard let rollback = Self.behind(position, witness) else { return nil }
            self = rollback
        // A store of a server that wrote no witness yet.
        case (nil, _): return nil
        case (_, .missing), (_, .unreadable): self = .witnessMissing
        case (let storeID?, .found(let id, let witness)):
            guard id == storeID else {
                self = .witnessForeign
                return
            }
            guard let rollback = Self.behind(position, witness) else { return nil }
            self = rollback
        }
    }

    /// Nil if one meta page follows the other.
    init?(metaPagesIn directory: String) throws(StoreError) {
        guard let file = try DataFile(path: directory + "/data.mdb") else { throw .missing }
        let newest = try file.newestMeta()
        guard !newest.isNextToOther else { return nil }
        self = .metaPagesApart(newest: newest.transactionID, other: newest.otherTransactionID)
    }

    private static func behind(_ store: Witness.Position, _ witness: Witness.Position) -> Rollback? {
        if store.transaction < witness.transaction {
            return .behind(store: store.transaction, witness: witness.transaction)
        }
        if store.event < witness.event { return .eventsBehind(store: store.event, witness: witness.event) }
        return nil
    }
}
