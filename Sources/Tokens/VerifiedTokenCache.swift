import Base
import Crypto
import Synchronization

/// A bounded map from a token's keyed hash to what it says, in shards so that loops do not wait for each other.
final class VerifiedTokenCache: Sendable {
    struct Fingerprint: Hashable {
        let low: UInt64
        let high: UInt64
    }

    private final class Shard: Sendable {
        let tokens = Mutex<[Fingerprint: VerifiedToken]>([:])
    }

    private let shards: [Shard]
    private let key: MACKey
    private static let tokensPerShardMax = 512

    init(random: RandomSource) {
        shards = (0..<16).map { _ in Shard() }
        key = MACKey(Secret(random.bytes(MACKey.keyByteCount)))
    }

    func fingerprint(of token: [UInt8]) -> Fingerprint {
        withUnsafeTemporaryAllocation(byteCount: MACKey.tagByteCount, alignment: 8) { tag in
            token.withUnsafeBytes { key.writeTag(of: $0, at: UnsafeRawBufferPointer(start: nil, count: 0), into: tag) }
            return Fingerprint(low: tag.load(as: UInt64.self), high: tag.load(fromByteOffset: 8, as: UInt64.self))
        }
    }

    func find(_ fingerprint: Fingerprint) -> VerifiedToken? {
        shards[Int(fingerprint.low & 15)].tokens.withLock { $0[fingerprint] }
    }

    /// A full shard is emptied: cheaper than order, and a token comes back with its next use.
    func insert(_ token: VerifiedToken, under fingerprint: Fingerprint) {
        shards[Int(fingerprint.low & 15)].tokens.withLock { tokens in
            if tokens.count >= Self.tokensPerShardMax { tokens.removeAll(keepingCapacity: true) }
            tokens[fingerprint] = token
        }
    }
}
