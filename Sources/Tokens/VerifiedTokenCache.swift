import Base
import Crypto
import Glibc
import Synchronization

/// A bounded map from tokens to their claims.
///
/// It is split into parts, of which each thread always uses the same one (docs/decisions/0134). A token that comes to
/// several of them is verified once by each.
///
/// A keyed hash of the signature leads to a set of a few tokens, with the last used token in front. A token is found by
/// this hash and by the signed bytes, which are compared directly; they are worthless without the signature, which is
/// not kept. A new token replaces the last token of its set. Only one token is replaced at a time, so that nobody waits
/// while hundreds are freed, and the freed memory serves the next token.
final class VerifiedTokenCache: Sendable {
    struct Fingerprint: Equatable {
        let low: UInt64
        let high: UInt64
    }

    /// The two parts of a token by which it is found.
    struct Key {
        let signedByteCount: Int
        let signature: Fingerprint
    }

    /// The key that a signature was checked with.
    struct Proof {
        /// See `PublishedKeySet.currentNumber`.
        let keySetNumber: Int
        let keyTimes: SigningKeyTimes

        /// Whether the key is still published and not retired.
        func holds(in keySetNumber: Int, at now: Timestamp) -> Bool {
            self.keySetNumber == keySetNumber && !keyTimes.isRetired(at: now)
        }
    }

    private struct Entry {
        let token: VerifiedToken
        let proof: Proof
        let signature: Fingerprint
        let signedBytes: [UInt8]
    }

    /// The sets of all parts. So 8,192 tokens are remembered at most, however many processors there are.
    private static let setCountMax = 1_024
    static let tokensPerSetMax = 8

    private let parts: PerThread<Mutex<[[Entry]]>>
    private let key: MACKey

    /// `threadCount`: how many threads verify tokens at the same time; by default one for each processor.
    init(random: RandomSource, threadCount: Int? = nil) {
        let partCount = PerThread<Mutex<[[Entry]]>>.count(forThreads: threadCount)
        parts = PerThread(count: partCount) { Mutex([[Entry]](repeating: [], count: Self.setCountMax / partCount)) }
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

    /// A token that this thread verified, if its proof still holds.
    func find(_ token: [UInt8], _ key: Key, in keySetNumber: Int, at now: Timestamp) -> VerifiedToken? {
        withSet(of: key.signature) { set in
            guard let place = Self.place(of: token, key, in: set), set[place].proof.holds(in: keySetNumber, at: now)
            else { return nil }
            if place > 0 { set.insert(set.remove(at: place), at: 0) }
            return set[0].token
        }
    }

    func insert(_ verified: VerifiedToken, _ proof: Proof, for token: [UInt8], _ key: Key) {
        let entry = Entry(
            token: verified, proof: proof, signature: key.signature, signedBytes: Array(token[..<key.signedByteCount]))
        withSet(of: key.signature) { set in
            if let earlier = Self.place(of: token, key, in: set) {
                set.remove(at: earlier)
            } else if set.count == Self.tokensPerSetMax {
                set.removeLast()
            }
            set.insert(entry, at: 0)
        }
    }

    private static func place(of token: [UInt8], _ key: Key, in set: [Entry]) -> Int? {
        token.withUnsafeBytes { token in
            let signedBytes = UnsafeRawBufferPointer(rebasing: token[..<key.signedByteCount])
            // Compared where they lie: a copy of an entry, and of the set for a closure, would count references.
            for index in set.indices where set[index].signature == key.signature {
                if set[index].signedBytes.withUnsafeBytes({ $0.hasSameBytes(as: signedBytes) }) { return index }
            }
            return nil
        }
    }

    private func withSet<Result: Sendable>(of signature: Fingerprint, _ body: (inout [Entry]) -> Result) -> Result {
        parts.withOwn { sets in
            // Proof: there is at least one set, and the remainder is below their number.
            sets.withLock { body(&$0[Int(signature.low % UInt64($0.count))]) }
        }
    }
}
