public import Base
import Crypto

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

extension ReadTransaction {
    /// Names the history of the store's writes, in 16 bytes. It is another one once acknowledged writes may be missing:
    /// after a restore, an accepted rollback, or a step into a cluster or out of it. The nodes of a cluster share it.
    ///
    /// The bytes are a digest of random ids, so they tell nothing else about the store.
    public func historyID() throws(StoreError) -> [UInt8] {
        var bytes: [UInt8]
        // The store's own id differs from node to node.
        if let place = try journalPlace() {
            bytes = [UInt8]("history of a cluster".utf8) + place.clusterID
        } else {
            bytes = [UInt8]("history of a store".utf8) + (try get(Schema.meta, Store.witnessKey) ?? [])
        }
        bytes += try epoch()
        return Array(Digest.sha256(bytes).prefix(16))
    }
}

extension WriteTransaction {
    /// Takes effect when the store is opened next.
    public func beginEpoch(_ random: RandomSource) throws(StoreError) {
        try put(Schema.meta, Epoch.key, random.bytes(Epoch.byteCount))
    }
}
