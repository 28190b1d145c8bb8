import Base
import Crypto
import Synchronization

/// A bounded map from a token's keyed hash to its claims. It is split into shards, so that loops seldom wait for each
/// other.
///
/// The hash leads to a set of a few tokens, the last used one in front. A new token replaces the last of its set. One
/// token replaces one, so that nobody waits while hundreds are freed, and their memory serves the next.
final class VerifiedTokenCache: Sendable {
    struct Fingerprint: Hashable {
        let low: UInt64
        let high: UInt64
    }

    private struct Entry {
        let fingerprint: Fingerprint
        let token: VerifiedToken
    }

    private final class Shard: Sendable {
        let sets = Mutex([[Entry]](repeating: [], count: setsPerShard))
    }

    private static let shardCount = 16
    private static let setsPerShard = 64
    static let tokensPerSetMax = 8

    private let shards: [Shard]
    private let key: MACKey

    init(random: RandomSource) {
        shards = (0..<Self.shardCount).map { _ in Shard() }
        key = MACKey(Secret(random.bytes(MACKey.keyByteCount)))
    }

    func fingerprint(of token: [UInt8]) -> Fingerprint {
        withUnsafeTemporaryAllocation(byteCount: MACKey.tagByteCount, alignment: 8) { tag in
            token.withUnsafeBytes { key.writeTag(of: $0, at: UnsafeRawBufferPointer(start: nil, count: 0), into: tag) }
            return Fingerprint(low: tag.load(as: UInt64.self), high: tag.load(fromByteOffset: 8, as: UInt64.self))
        }
    }

    func find(_ fingerprint: Fingerprint) -> VerifiedToken? {
        withSet(of: fingerprint) { set in
            guard let index = set.firstIndex(where: { $0.fingerprint == fingerprint }) else { return nil }
            let entry = set[index]
            if index > 0 {
                set.remove(at: index)
                set.insert(entry, at: 0)
            }
            return entry.token
        }
    }

    func insert(_ token: VerifiedToken, under fingerprint: Fingerprint) {
        withSet(of: fingerprint) { set in
            if set.count == Self.tokensPerSetMax { set.removeLast() }
            set.insert(Entry(fingerprint: fingerprint, token: token), at: 0)
        }
    }

    private func withSet<Result: Sendable>(of fingerprint: Fingerprint, _ body: (inout [Entry]) -> Result) -> Result {
        let index = Int(fingerprint.low % UInt64(Self.shardCount * Self.setsPerShard))
        return shards[index % Self.shardCount].sets.withLock { body(&$0[index / Self.shardCount]) }
    }
}
