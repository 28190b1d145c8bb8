import Base

extension Store {
    /// Runs `body` for each of `items`, in as many writes as it takes that none holds up the writes of others for long:
    /// a write begins no further item after `Limits.sliceItemsMax` items, `Limits.sliceChangesMax` changes, or
    /// `Limits.writeBatchTimeMax`. Returns what `body` returned.
    ///
    /// The items of earlier writes stay changed if a later write fails, or if the task is cancelled in between. The
    /// error of a later write is told as `StoreError.afterEarlierWrites`. An error of `body` undoes its write, and ends
    /// all.
    public func write<Item: Sendable, Value: Sendable>(
        each items: [Item], for purpose: WritePurpose = .growth,
        _ body: @escaping @Sendable (borrowing WriteTransaction, Item) throws -> Value
    ) async throws -> [Value] {
        var values: [Value] = []
        while values.count < items.count {
            do {
                values += try await write(firstOf: items[values.count...], for: purpose, body)
            } catch let error as StoreError where !values.isEmpty {
                throw error.afterEarlierWrites
            }
        }
        return values
    }

    /// Does the first of these writes, with one item at least. Returns what `body` returned for the items in it.
    public func write<Item: Sendable, Value: Sendable>(
        firstOf items: ArraySlice<Item>, for purpose: WritePurpose = .growth,
        _ body: @escaping @Sendable (borrowing WriteTransaction, Item) throws -> Value
    ) async throws -> [Value] {
        try Task.checkCancellation()
        let slice = items.prefix(environment.limits.sliceItemsMax)
        let changesMax = environment.limits.sliceChangesMax
        return try await write(for: purpose) { transaction in
            // Each run of this body has its own time, and may do another number of items: the last run counts.
            let time = transaction.beginSlice()
            let changesBefore = transaction.batch.changeCount
            var done: [Value] = []
            for item in slice {
                done.append(try body(transaction, item))
                // An item that changes nothing takes time, too.
                if transaction.batch.changeCount - changesBefore >= changesMax || time.isOver { break }
            }
            return done
        }
    }
}
