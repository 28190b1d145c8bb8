import Base
import Messages
import Store

/// The sweep's work on the log of revocations: it deletes those that matter to no token any more.
///
/// It finds them by their sequences, which are keys, and by the notes of the time that are whole. It does not read the
/// revocations themselves. So a damaged revocation is deleted when its time has come, and not before: until then the
/// caller who reads it gets an error, and takes no token for not revoked (docs/decisions/0149).
struct RevocationUpkeep: Sendable {
    let resources: Resources
    /// How many revocations one write deletes. With each of them, the row that names its tenant is deleted.
    private static let rowsPerWrite = 150

    /// The time must be proven.
    func sweep() async throws {
        let (store, clock) = (resources.store, resources.clock)
        // Before the newest note is followed by a whole one.
        try tellDamagedNotes(now: clock.now())
        // The clock is read in the run, because the note is about all revocations up to then.
        try await store.write { try $0.noteRevocationTime(clock.now()) }
        try await forget(now: clock.now())
        while try await store.write({ [now = clock.now()] in
            try $0.forgetRevocationTimes(now: now, limit: Self.rowsPerWrite)
        }) {}
    }

    /// Logs a damaged note where the newest note is looked for, or the one that tells which revocations are old.
    private func tellDamagedNotes(now: Timestamp) throws {
        let areDamaged = try resources.store.read { transaction in
            var areDamaged = false
            for time in [now, now - RevocationRetention.sessionCookies] {
                _ = try transaction.revocationNote(before: time) { areDamaged = true }
            }
            return areDamaged
        }
        if areDamaged { resources.damagedRecords.passOver(rowOf: Tables.revocationTimes.name.description) }
    }

    private func forget(now: Timestamp) async throws {
        var last: Int64 = 0
        while true {
            let old = try resources.store.read { transaction in
                try transaction.oldRevocations(after: last, limit: Self.rowsPerWrite, now: now)
            }
            guard let end = old.last else { return }
            try await forget(old, now: now)
            last = end.sequence
        }
    }

    private func forget(_ old: [RevocationPointer], now: Timestamp) async throws {
        let lost = Set(old.filter { $0.rows == nil }.map(\.sequence))
        let found = try lost.isEmpty ? [] : resources.store.read { try $0.revocationRows(of: lost) }
        try await resources.store.write { transaction in
            let end = try transaction.reading.lastOldRevocation(now: now)
            for pointer in old where pointer.sequence <= end {
                if let rows = pointer.rows {
                    try transaction.delete(Tables.revocations, SequenceKey(rows, pointer.sequence))
                }
                try transaction.delete(Tables.revocationTenants, RevocationKey(pointer.sequence))
            }
            for row in found where row.sequence <= end { try transaction.delete(Tables.revocations, row) }
        }
    }
}

/// A row of `Tables.revocationTenants`.
private struct RevocationPointer: Sendable {
    let sequence: Int64
    /// The tenant whose rows hold the revocation; nil if this row is damaged.
    let rows: Text?
}

extension ReadTransaction {
    /// The sequence of the last revocation that matters to no token any more. The newest row stays, because the
    /// sequence goes on from it.
    fileprivate func lastOldRevocation(now: Timestamp) throws -> Int64 {
        let noted = try revocationSequence(before: now - RevocationRetention.sessionCookies)
        return min(noted, try lastWholeRevocationSequence() - 1)
    }

    /// The next old revocations after a sequence, up to `limit`, damaged ones too.
    fileprivate func oldRevocations(after sequence: Int64, limit: Int, now: Timestamp) throws -> [RevocationPointer] {
        let end = try lastOldRevocation(now: now)
        var old: [RevocationPointer] = []
        try scanKeys(of: Tables.revocationTenants, from: .after(RevocationKey(sequence))) { key in
            guard key.sequence > 0, key.sequence <= end, old.count < limit else { return false }
            old.append(RevocationPointer(sequence: key.sequence, rows: try rows(under: key)))
            return true
        }
        return old
    }

    private func rows(under key: RevocationKey) throws -> Text? {
        do throws(StoreError) {
            guard let bytes = try get(Tables.revocationTenants, key) else { return nil }
            return Text(unchecked: bytes)
        } catch {
            guard case .corrupt = error else { throw error }
            return nil
        }
    }

    /// The keys of revocations whose tenants are not known. This looks at the keys of all revocations.
    fileprivate func revocationRows(of sequences: Set<Int64>) throws -> [SequenceKey] {
        var found: [SequenceKey] = []
        try scanKeys(of: Tables.revocations) { key in
            if sequences.contains(key.sequence) { found.append(key) }
            return true
        }
        return found
    }
}

extension WriteTransaction {
    /// Deletes up to `limit` old notes of the time, damaged ones too; returns whether there may be more. The newest
    /// whole one tells which revocations may be deleted: it goes when there is a newer one.
    fileprivate func forgetRevocationTimes(now: Timestamp, limit: Int) throws -> Bool {
        let end = now - RevocationRetention.sessionCookies
        let kept = try reading.revocationNote(before: end)?.time
        var old: [TimeKey] = []
        try reading.scanKeys(of: Tables.revocationTimes) { key in
            guard key.time <= end, old.count < limit else { return false }
            if key.time != kept { old.append(key) }
            return true
        }
        for time in old { try delete(Tables.revocationTimes, time) }
        return old.count == limit
    }
}
