import Base
public import Messages
public import Store
import Tokens

/// A stored key, with its times and its number.
struct NumberedSigningKey {
    var stored: StoredSigningKey
    let times: SigningKeyTimes

    /// How long a revoked key is listed, which is as long as verifiers are told of it.
    static let revokedKept = Duration.hours(15 * 24)

    /// The keys that are not revoked, newest first.
    static func live(in keys: [StoredSigningKey]) -> [NumberedSigningKey] {
        let live = keys.filter { $0.revokedAtMicros == 0 }
        let numbered = SigningKeyTimes.numbered(live.map { ($0.keyID, SigningKeyTimes($0)) })
        return zip(live, numbered).map { NumberedSigningKey(stored: $0, times: $1) }.sorted {
            $0.times.sequence > $1.times.sequence
        }
    }
}

extension ReadTransaction {
    /// The keys of one use that are not revoked, newest first.
    func signingKeys(for use: TokenUse) throws -> [NumberedSigningKey] {
        NumberedSigningKey.live(in: try allSigningKeys(for: use))
    }

    /// All keys of one use that can be read, and the ids of the damaged rows, whose use is not known.
    func readableSigningKeys(for use: TokenUse) throws -> (keys: [StoredSigningKey], damagedIDs: [Text]) {
        var (keys, damagedIDs): ([StoredSigningKey], [Text]) = ([], [])
        try scanKeys(of: SigningTables.keys) { key in
            do {
                if let stored = try get(SigningTables.keys, key), stored.isUsed(for: use) { keys.append(stored) }
            } catch StoreError.corrupt {
                damagedIDs.append(key.text)
            }
            return true
        }
        return (keys, damagedIDs)
    }

    /// The newest key of one use, if the server is to make its successor now.
    func keyToSucceed(
        for use: TokenUse, _ rotation: SigningKeyRotation, at now: Timestamp
    ) throws -> StoredSigningKey? {
        let keys = try signingKeys(for: use)
        guard let newest = keys.first, rotation.isDue(after: newest.times, keyCount: keys.count, at: now) else {
            return nil
        }
        return newest.stored
    }

    /// The number of the next key, above the numbers of all keys, including revoked ones.
    func nextSigningKeySequence() throws -> Int64 {
        var last: Int64 = 0
        try scan(SigningTables.keys) { row in
            last = max(last, try row.record.sequence)
            return true
        }
        return last + 1
    }

    func allSigningKeys(for use: TokenUse) throws -> [StoredSigningKey] {
        var keys: [StoredSigningKey] = []
        try scan(SigningTables.keys) { row in
            let stored = try row.record
            if stored.isUsed(for: use) { keys.append(stored) }
            return true
        }
        return keys
    }

    /// The keys of one use that at `now` verify nothing any more and are no longer listed.
    func signingKeysOver(for use: TokenUse, at now: Timestamp) throws -> [StoredSigningKey] {
        try allSigningKeys(for: use).filter { key in
            guard key.revokedAtMicros == 0 else {
                return Timestamp(microseconds: key.revokedAtMicros) + NumberedSigningKey.revokedKept <= now
            }
            return key.retiresAtMicros != 0 && Timestamp(microseconds: key.retiresAtMicros) <= now
        }
    }

    /// The keys of one use that were revoked, as they are listed.
    public func revokedSigningKeys(for use: TokenUse) throws -> [SigningKeyInfo] {
        try allSigningKeys(for: use).filter { $0.revokedAtMicros != 0 }.map { SigningKeyInfo(revoked: $0, use: use) }
    }
}

extension SigningKeyTimes {
    init(_ stored: StoredSigningKey) {
        self.init(
            sequence: stored.sequence, createdAt: Timestamp(microseconds: stored.createdAtMicros),
            signsFrom: Timestamp(microseconds: stored.signsFromMicros),
            retiresAt: stored.retiresAtMicros == 0 ? nil : Timestamp(microseconds: stored.retiresAtMicros))
    }
}

extension SigningKeyInfo {
    init(revoked stored: StoredSigningKey, use: TokenUse) {
        self.init(
            keyID: stored.keyID, algorithm: stored.algorithm, state: .revoked, createdAtMicros: stored.createdAtMicros,
            signsFromMicros: stored.signsFromMicros, retiresAtMicros: stored.revokedAtMicros, tokenUse: use)
    }
}

extension StoredSigningKey {
    /// Keys from before there were session cookies name no use, and sign ID tokens.
    func isUsed(for use: TokenUse) -> Bool { (tokenUse == .unspecified ? .idToken : tokenUse) == use }
}
