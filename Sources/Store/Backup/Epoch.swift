public import Base

// Random bytes that each restore draws again. If a key is derived from them, whatever was made with the key is void in
// a restored store.

enum Epoch {
    static let key = [UInt8]("epoch".utf8)
    static let byteCount = 16
}

extension Store {
    /// Empty for a store that was never restored.
    public func epoch() throws(StoreError) -> [UInt8] {
        try Self.throwingStoreErrors { try read { try $0.epoch() } }
    }
}

extension ReadTransaction {
    fileprivate func epoch() throws(StoreError) -> [UInt8] {
        guard let epoch = try get(Schema.meta, Epoch.key) else { return [] }
        guard epoch.count == Epoch.byteCount else { throw corrupt(Schema.meta.id) }
        return epoch
    }
}

extension WriteTransaction {
    /// Takes effect when the store is opened next.
    public func beginEpoch(_ random: RandomSource) throws(StoreError) {
        try put(Schema.meta, Epoch.key, random.bytes(Epoch.byteCount))
    }
}
