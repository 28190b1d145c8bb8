import Base

extension Store {
    /// Runs `body` for each of `items`, in as many writes as it takes that none holds up the writes of others for long:
    /// a write begins no further item after `Limits.sliceChangesMax` changes. Returns what `body` returned.
    ///
    /// The items of earlier writes stay changed if a later write fails, or if the task is cancelled in between. An
    /// error of `body` undoes the write that it is in, and ends all.
    public func write<Item: Sendable, Value: Sendable>(
        each items: [Item], for purpose: WritePurpose = .growth,
        _ body: @escaping @Sendable (borrowing WriteTransaction, Item) throws -> Value
    ) async throws -> [Value] {
        var values: [Value] = []
        while values.count < items.count {
            values += try await write(firstOf: items[values.count...], for: purpose, body)
        }
        return values
    }

    /// Does the first of these writes. Returns what `body` returned for the items in it.
    public func write<Item: Sendable, Value: Sendable>(
        firstOf items: ArraySlice<Item>, for purpose: WritePurpose = .growth,
        _ body: @escaping @Sendable (borrowing WriteTransaction, Item) throws -> Value
    ) async throws -> [Value] {
        try Task.checkCancellation()
        let slice = items.prefix(environment.limits.sliceItemsMax)
        let changesMax = environment.limits.sliceChangesMax
        return try await write(for: purpose) { transaction in
            let changesBefore = transaction.batch.changeCount
            var done: [Value] = []
            for item in slice where transaction.batch.changeCount - changesBefore < changesMax {
                done.append(try body(transaction, item))
            }
            return done
        }
    }
}
