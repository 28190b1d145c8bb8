public import Crypto
public import Store

/// The MACs of all records: SipHash-2-4-128 under a key per table, derived from the master key.
public final class RecordMACs: RecordAuthenticator {
    private let keys: MACKeyTable

    public init(masterKey: MasterKey) {
        self.keys = MACKeyTable((0...UInt8.max).map { masterKey.recordMAC(table: "\($0)") })
    }

    public func tag(
        table: UInt8, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
    ) -> (UInt64, UInt64) {
        withUnsafeTemporaryAllocation(byteCount: MACKey.tagByteCount, alignment: 8) { tag in
            keys.writeTag(of: value, at: key, under: Int(table), into: tag)
            return (tag.load(as: UInt64.self), tag.load(fromByteOffset: 8, as: UInt64.self))
        }
    }

    /// SHA-256 over the pieces, for the event log's chain.
    public static let eventHash: EventHash = { pieces in Digest.sha256(of: pieces) }
}
