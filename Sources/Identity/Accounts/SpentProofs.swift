public import Base
public import Messages
public import Store
import Tokens

// What counts once is kept as used until it has expired. Where an operator lowers the clock (`--accept-clock`), some of
// it is in its time again while the row that says so may be gone. So all that can be in its time then counts as used.

/// The kinds of proof that count once and expire.
enum OnceOnlyProof: String, CaseIterable {
    case customToken = "custom token"
    case pendingToken = "pending token"
    case temporaryProof = "temporary proof"

    /// No proof that is in its time ends later than this from now.
    fileprivate var endsWithin: Duration {
        switch self {
        case .customToken: ServiceAccountJWT.lifetimeMax + TimeKeeping.slack
        case .pendingToken: PendingCredentials.lifetime + TimeKeeping.slack
        case .temporaryProof: TemporaryProofs.lifetime + TimeKeeping.slack
        }
    }

    fileprivate var key: TextKey { TextKey(Text(rawValue)) }
}

extension ReadTransaction {
    /// Whether a proof that ends at `end` counts as used, whatever else is known of it.
    func isSpent(_ proof: OnceOnlyProof, until end: Timestamp) throws -> Bool {
        guard let latest = try get(Tables.spentProofs, proof.key) else { return false }
        return latest.withUnsafeBytes { TimeKey(stored: $0).map { end <= $0.time } ?? true }
    }
}

extension WriteTransaction {
    /// The clock is set from `former` down to `now`: no proof of before counts again.
    func spendProofs(former: Timestamp, now: Timestamp) throws {
        for proof in OnceOnlyProof.allCases {
            let latest = min(former + TimeKeeping.slack, now + proof.endsWithin)
            try put(Tables.spentProofs, proof.key, TimeKey(latest).bytes)
        }
    }
}

extension StoredUsedTokenID: ExpiringRecord {
    public static func expire(
        _ key: HashKey, of table: Table<HashKey, Self>, in transaction: borrowing WriteTransaction, now _: Timestamp
    ) throws {
        try transaction.delete(table, key)
    }
}
