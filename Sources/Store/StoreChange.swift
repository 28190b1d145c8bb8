/// A record that a batch put or deleted.
public struct StoreChange: Sendable, Equatable {
    public let tableID: UInt8
    public let key: [UInt8]
    /// Nil for a record that was deleted.
    public let value: [UInt8]?

    public init(tableID: UInt8, key: [UInt8], value: [UInt8]?) {
        self.tableID = tableID
        self.key = key
        self.value = value
    }

    /// False for rows that each store has for itself alone, and for sums and pieces that follow from the rows.
    static func isShared(_ tableID: UInt8, _ key: UnsafeRawBufferPointer) -> Bool {
        switch tableID {
        case Schema.tenantUsage.id, Schema.pieces.id: false
        case Schema.meta.id: key.elementsEqual(EventLog.sequenceKey)
        default: true
        }
    }
}

/// A batch as a list: a store with the same rows that makes these changes in this order has the same rows afterwards.
public struct StoreChanges: Sendable {
    public let changes: [StoreChange]
    /// The topics that the batch's writes announced.
    public let topics: [ChangeTopic]
}
