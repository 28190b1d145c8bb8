extension WriteTransaction {
    /// Makes the changes of a batch that was recorded elsewhere.
    public func apply(_ changes: [StoreChange]) throws(StoreError) {
        for change in changes { try apply(change) }
    }

    func apply(_ change: StoreChange) throws(StoreError) {
        try change.key.span.withUnsafeBytes { key throws(StoreError) in
            guard let value = change.value else {
                _ = try delete(tableID: change.tableID, key: key)
                return
            }
            try value.span.withUnsafeBytes { value throws(StoreError) in
                _ = try put(tableID: change.tableID, key: key, payload: value, ifAbsent: false)
            }
        }
    }
}
