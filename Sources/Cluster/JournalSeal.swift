public import Base
public import Crypto
public import Journal
import Store

/// Seals the entries of a cluster's journal and chains them, so that the engine's operators can neither read nor alter
/// them, nor replay, move or leave one out. They can only stop the journal.
///
/// An entry is sealed with AES-256-GCM; its place goes into the authenticated context. A row's hash is SHA-256 over its
/// place, the hash of the row before it, and the sealed bytes. Random nonces allow 2³² sealings with one key, so each
/// 2²⁰ positions have a key of their own.
public struct JournalSeal: Sendable {
    public let clusterID: [UInt8]
    private let masterKey: MasterKey
    private let random: RandomSource

    /// The largest entry, and the bytes that sealing adds.
    static let byteCountMax = (16 << 20) + (1 << 20)

    public init(clusterID: [UInt8], masterKey: MasterKey, random: RandomSource) {
        (self.clusterID, self.masterKey, self.random) = (clusterID, masterKey, random)
    }

    /// The mark of a cluster's beginning: the store from which it was made.
    public var beginning: JournalMark {
        JournalMark(position: 0, hash: hash([[UInt8]("postern journal".utf8), clusterID]))
    }

    /// 32 bytes by which a node checks that it has the cluster's master key.
    public var keyCheck: [UInt8] {
        masterKey.hmac("journal").tag(of: clusterID)
    }

    func seal(
        _ entry: [UInt8], id: BatchID, over mark: JournalMark
    ) throws(CryptoError) -> (head: JournalHead, body: [UInt8]) {
        let context = context(position: mark.position + 1, previousHash: mark.hash, id: id)
        let plain = entry.span.withUnsafeBytes { Secret(copying: $0) }
        let body = try key(at: mark.position + 1).seal(plain, context: context, random: random)
        let new = JournalMark(position: mark.position + 1, hash: hash([context, body]))
        return (JournalHead(mark: new, previousHash: mark.hash, batchID: id), body)
    }

    /// Throws if the row is not what its author wrote in this place.
    func open(_ body: UnsafeRawBufferPointer, of head: JournalHead) throws(JournalEngineError) -> [UInt8] {
        let context = context(position: head.mark.position, previousHash: head.previousHash, id: head.batchID)
        guard head.mark.hash == hash([context, [UInt8](body)]) else { throw .damaged(head.mark.position) }
        do throws(CryptoError) {
            return try key(at: head.mark.position).open(body, context: context).withBytes { [UInt8]($0) }
        } catch {
            throw .damaged(head.mark.position)
        }
    }

    /// The seal of a snapshot with this id, over a store at `mark` or after it.
    func snapshot(_ id: [UInt8], at mark: JournalMark) -> SnapshotSeal {
        let key = masterKey.snapshot(id: id, byteCountMax: SnapshotSeal.byteCountMax)
        return SnapshotSeal(key: key, context: clusterID + id + mark.position.bigEndianBytes + mark.hash.bytes, random)
    }

    private func key(at position: UInt64) -> SealingKey {
        masterKey.journal(block: position >> 20, byteCountMax: Self.byteCountMax)
    }

    private func context(position: UInt64, previousHash: JournalHash, id: BatchID) -> [UInt8] {
        clusterID + position.bigEndianBytes + previousHash.bytes + id.bytes
    }

    private func hash(_ pieces: [[UInt8]]) -> JournalHash {
        var digest = RunningDigest()
        for piece in pieces { digest.update(piece) }
        // Proof: SHA-256 has 32 bytes.
        guard let hash = JournalHash(bytes: digest.finish()) else { preconditionFailure("a hash of another size") }
        return hash
    }
}
