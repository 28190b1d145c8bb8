public import Base
import Crypto

// What a restore leaves in the store. Random bytes that each restore draws again: if a key is derived from them,
// whatever was made with the key is void in a restored store. And a time: records that count once and are not newer
// than that may have been used since the backup.

enum Epoch {
    static let key = [UInt8]("epoch".utf8)
    static let byteCount = 16
    static let restoreKey = [UInt8]("restored".utf8)
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

extension ReadTransaction {
    /// Whether a record that was made at `time` came out of the backup from which the store was last restored. It may
    /// have been used and deleted since. False in a store that was never restored, or by an older server only.
    public func isFromBackup(madeAt time: Timestamp) throws(StoreError) -> Bool {
        guard let newest = try newestOfBackup() else { return false }
        return time <= newest
    }

    fileprivate func newestOfBackup() throws(StoreError) -> Timestamp? {
        guard let bytes = try get(Schema.meta, Epoch.restoreKey) else { return nil }
        guard bytes.count == 8 else { throw corrupt(Schema.meta.id) }
        return Timestamp(microseconds: Int64(bitPattern: bytes.bigEndianNumber))
    }
}

extension WriteTransaction {
    /// Takes effect when the store is opened next.
    public func beginEpoch(_ random: RandomSource) throws(StoreError) {
        try put(Schema.meta, Epoch.key, random.bytes(Epoch.byteCount))
    }

    /// Notes that no record of the restored backup was made later than `time`: see `isFromBackup`.
    public func setNewestOfBackup(_ time: Timestamp) throws(StoreError) {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: time.microseconds)
        try put(Schema.meta, Epoch.restoreKey, bytes)
    }

    /// An operator says that it is `now`. Records that are made from now on must not count as those of a backup that
    /// was taken or restored while the clock was ahead.
    public func lowerNewestOfBackup(to now: Timestamp) throws(StoreError) {
        guard let newest = try reading.newestOfBackup(), newest > now else { return }
        try setNewestOfBackup(now)
    }
}
