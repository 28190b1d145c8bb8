public import Base
public import Messages
public import Store
import Tokens

// A proof that counts once is recorded as used until it can be valid nowhere. When an operator lowers the clock
// (`--accept-clock`), some proofs become valid again, while the rows that record their use may be gone. So all proofs
// that can be valid then count as used.

/// The kinds of proof that count once and expire.
enum OnceOnlyProof: String, CaseIterable {
    case customToken = "custom token"
    case pendingToken = "pending token"
    case temporaryProof = "temporary proof"

    /// A valid proof ends at most this long after now.
    fileprivate var endsWithin: Duration {
        switch self {
        case .customToken: ServiceAccountJWT.lifetimeMax + TimeKeeping.slack
        case .pendingToken: SealedPendingCredential.lifetime + TimeKeeping.slack
        case .temporaryProof: SealedTemporaryProof.lifetime + TimeKeeping.slack
        }
    }

    fileprivate var key: TextKey { TextKey(Text(rawValue)) }
}

extension ReadTransaction {
    /// Whether a proof that ends at `end` counts as used because the clock was lowered, no matter what its own row
    /// says.
    func isSpent(_ proof: OnceOnlyProof, until end: Timestamp) throws -> Bool {
        guard let latest = try get(Tables.spentProofs, proof.key) else { return false }
        return latest.withUnsafeBytes { TimeKey(stored: $0).map { end <= $0.time } ?? true }
    }
}

extension WriteTransaction {
    /// Marks all earlier proofs as used, because the clock is set from `former` down to `now`.
    func spendProofs(former: Timestamp, now: Timestamp) throws {
        for proof in OnceOnlyProof.allCases {
            let latest = min(former + TimeKeeping.slack, now + proof.endsWithin)
            try put(Tables.spentProofs, proof.key, TimeKey(latest).bytes)
        }
    }
}

extension StoredUsedTokenID: ExpiringRecord {
    /// How much longer than the proof itself the record of its use lives. A call that was in time may wait for half a
    /// minute (`Limits.requestTimeoutMax`) until its write runs, and in a cluster the clock of the node that deletes
    /// the record may be ahead.
    static let keptAfterEnd = Duration.minutes(1)

    public static func expire(
        _ key: HashKey, of table: Table<HashKey, Self>, in transaction: borrowing WriteTransaction, now _: Timestamp
    ) throws {
        try transaction.delete(table, key)
    }
}
