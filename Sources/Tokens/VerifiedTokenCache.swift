import Base
import Crypto
import Glibc
import Synchronization

/// A bounded map from tokens to their claims. It is split into shards, so that loops seldom wait for each other.
///
/// A keyed hash of the signature leads to a set of a few tokens, with the last used token in front. A token is found by
/// this hash and by the signed bytes, which are compared directly; they are worthless without the signature, which is
/// not kept. A new token replaces the last token of its set. Only one token is replaced at a time, so that nobody waits
/// while hundreds are freed, and the freed memory serves the next token.
final class VerifiedTokenCache: Sendable {
    struct Fingerprint: Hashable {
        let low: UInt64
        let high: UInt64
    }

    /// The two parts of a token by which it is found.
    struct Key {
        let signedByteCount: Int
        let signature: Fingerprint
    }

    private struct Entry {
        let signature: Fingerprint
        let signedBytes: [UInt8]
        let token: VerifiedToken

        func isOf(_ bytes: UnsafeRawBufferPointer, _ key: Key) -> Bool {
            guard signature == key.signature else { return false }
            let signed = UnsafeRawBufferPointer(rebasing: bytes[..<key.signedByteCount])
            return signedBytes.withUnsafeBytes { $0.hasSameBytes(as: signed) }
        }
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

    /// Nil for bytes with fewer than three parts, which are no token. If there are more than three, the signature is
    /// everything from the third part on, which is then not valid.
    func key(of token: [UInt8]) -> Key? {
        token.withUnsafeBytes { token in
            guard let headerByteCount = Self.firstPeriod(in: token, from: 0),
                let signedByteCount = Self.firstPeriod(in: token, from: headerByteCount + 1)
            else { return nil }
            let signature = UnsafeRawBufferPointer(rebasing: token[(signedByteCount + 1)...])
            return Key(signedByteCount: signedByteCount, signature: fingerprint(of: signature))
        }
    }

    private static func firstPeriod(in token: UnsafeRawBufferPointer, from index: Int) -> Int? {
        guard let start = token.baseAddress, let found = memchr(start + index, 0x2E, token.count - index) else {
            return nil
        }
        return UnsafeRawPointer(found) - start
    }

    private func fingerprint(of signature: UnsafeRawBufferPointer) -> Fingerprint {
        withUnsafeTemporaryAllocation(byteCount: MACKey.tagByteCount, alignment: 8) { tag in
            key.writeTag(of: signature, at: UnsafeRawBufferPointer(start: nil, count: 0), into: tag)
            return Fingerprint(low: tag.load(as: UInt64.self), high: tag.load(fromByteOffset: 8, as: UInt64.self))
        }
    }

    func find(_ token: [UInt8], _ key: Key) -> VerifiedToken? {
        token.withUnsafeBytes { bytes in
            withSet(of: key.signature) { set in
                guard let index = set.firstIndex(where: { $0.isOf(bytes, key) }) else { return nil }
                let entry = set[index]
                if index > 0 {
                    set.remove(at: index)
                    set.insert(entry, at: 0)
                }
                return entry.token
            }
        }
    }

    func insert(_ verified: VerifiedToken, for token: [UInt8], _ key: Key) {
        let entry = Entry(
            signature: key.signature, signedBytes: Array(token[..<key.signedByteCount]), token: verified)
        withSet(of: key.signature) { set in
            if set.count == Self.tokensPerSetMax { set.removeLast() }
            set.insert(entry, at: 0)
        }
    }

    private func withSet<Result: Sendable>(of signature: Fingerprint, _ body: (inout [Entry]) -> Result) -> Result {
        let index = Int(signature.low % UInt64(Self.shardCount * Self.setsPerShard))
        return shards[index % Self.shardCount].sets.withLock { body(&$0[index / Self.shardCount]) }
    }
}
