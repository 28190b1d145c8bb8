public import Base
public import Messages
public import Store

// The revocations that verifiers have to know, in the order of their commits. Each is written in the transaction of the
// change itself, and read by Tokens.WatchRevocations. A token outlives its revocation by two weeks at most, and a row
// is kept that long.

/// How long a revocation still matters: as long as a token lives that was signed before it.
public enum RevocationRetention {
    /// Clocks differ, and a verifier may be behind.
    static let margin = Duration.hours(1)
    public static let idTokens = Duration.hours(1) + margin
    public static let sessionCookies = Duration.hours(14 * 24) + margin
}

enum RevocationRows {
    /// Stands in the place of a tenant's id in rows that concern all tenants. No tenant has this id.
    static let everyTenant: Text = "*"
}

/// A revocation and its place in the log.
public struct SequencedRevocation: Sendable, Equatable {
    public let sequence: Int64
    public let revocation: Revocation

    /// The tenant whose rows hold the record.
    var rows: Text { revocation.kind == .signingKey ? RevocationRows.everyTenant : revocation.tenantID }

    public var place: RevocationPlace { RevocationPlace(sequence: sequence, timeMicros: revocation.timeMicros) }
}

/// A place in the log. The time tells it apart from a place in another log that reached the same sequence.
public struct RevocationPlace: Sendable, Equatable {
    public let sequence: Int64
    public let timeMicros: Int64

    init(sequence: Int64, timeMicros: Int64) {
        self.sequence = sequence
        self.timeMicros = timeMicros
    }

    /// `<sequence>.<time>`.
    init?(_ text: ArraySlice<UInt8>) {
        let numbers = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            .map { Int64(String(decoding: $0, as: UTF8.self)) }
        guard numbers.count == 2, let sequence = numbers[0], sequence >= 0, let time = numbers[1] else { return nil }
        self.init(sequence: sequence, timeMicros: time)
    }

    /// The place before all revocations.
    static let start = RevocationPlace(sequence: 0, timeMicros: 0)
}

extension WriteTransaction {
    /// Revokes every token of the user from before `validAfter`.
    func revokeTokens(of key: UserKey, before validAfter: Timestamp, now: Timestamp) throws {
        try append(
            Revocation(
                kind: .user, tenantID: key.tenant, uid: key.uid, validAfterMicros: validAfter.microseconds,
                timeMicros: now.microseconds))
    }

    func revokeTokens(ofSession id: [UInt8], of key: UserKey, now: Timestamp) throws {
        try append(
            Revocation(
                kind: .session, tenantID: key.tenant, uid: key.uid, sessionID: Hex.encode(id),
                timeMicros: now.microseconds))
    }

    /// Appends a revocation of the whole tenant: `.tenantDisabled`, `.tenantEnabled` or `.tenantDeleted`.
    func appendRevocation(_ kind: RevocationKind, tenantID: Text, now: Timestamp) throws {
        try append(Revocation(kind: kind, tenantID: tenantID, timeMicros: now.microseconds))
    }

    /// Revokes every token that the key signed, of any tenant.
    func revokeTokens(ofSigningKey keyID: Text, now: Timestamp) throws {
        try append(
            Revocation(kind: .signingKey, timeMicros: now.microseconds, keyID: keyID), of: RevocationRows.everyTenant)
    }

    private func append(_ revocation: Revocation) throws { try append(revocation, of: revocation.tenantID) }

    /// The times of rows increase with their sequence, even if a node's clock is behind another's: cursors tell logs
    /// apart by the time.
    private func append(_ revocation: Revocation, of rows: Text) throws {
        let last = try reading.endOfRevocations()
        let (sequence, isTooHigh) = last.sequence.addingReportingOverflow(1)
        guard !isTooHigh else { throw StoreError.corrupt(table: Tables.revocationTenants.name.description) }
        var revocation = revocation
        revocation.timeMicros = max(revocation.timeMicros, last.timeMicros &+ 1)
        try put(Tables.revocations, SequenceKey(rows, sequence), revocation)
        try put(Tables.revocationTenants, RevocationKey(sequence), rows.bytes)
    }

    /// Notes which revocation is the last one at `now`, a proven time: these notes tell the age of revocations. Called
    /// now and then.
    func noteRevocationTime(_ now: Timestamp) throws {
        let last = try reading.lastWholeRevocationSequence()
        guard last > (try reading.newestRevocationTime()?.sequence ?? 0) else { return }
        try put(Tables.revocationTimes, TimeKey(now), RevocationKey(last).bytes)
    }
}

extension ReadTransaction {
    /// The sequence of the newest revocation; 0 when there never was one.
    public func lastRevocationSequence() throws -> Int64 { try revocationSequence(reversed: true) }

    /// The place of the newest entry of the log.
    public func lastRevocationPlace() throws -> RevocationPlace {
        try revocationPlace(try lastRevocationSequence()) ?? .start
    }

    /// The sequence of the newest revocation whose row in `Tables.revocationTenants` is not damaged; 0 when there is
    /// none.
    func lastWholeRevocationSequence() throws -> Int64 {
        var sequence: Int64 = 0
        try scanKeys(of: Tables.revocationTenants, reversed: true) { key in
            do {
                if try exists(Tables.revocationTenants, key) { sequence = key.sequence }
            } catch StoreError.corrupt {
                // It counts for nothing here.
            }
            return sequence == 0
        }
        return sequence
    }

    /// The place after which the next revocation is written: the newest sequence, and the newest time that can be read.
    /// If the newest revocation is damaged or lost, nobody else's tokens must stay valid because of it.
    fileprivate func endOfRevocations() throws -> RevocationPlace {
        var (last, timeMicros): (Int64, Int64) = (0, 0)
        try scanKeys(of: Tables.revocationTenants, reversed: true) { key in
            last = max(last, key.sequence)
            do {
                timeMicros = try revocationPlace(key.sequence)?.timeMicros ?? 0
            } catch StoreError.corrupt {
                // Its time is not known.
            }
            return timeMicros == 0
        }
        return RevocationPlace(sequence: last, timeMicros: timeMicros)
    }

    /// The time of a tenant's newest revocation, which is the latest of their times; nil when no row is kept.
    func lastRevocationTime(of tenantID: Text) throws -> Timestamp? {
        var time: Timestamp?
        try scan(Tables.revocations, prefix: TenantPrefix(tenantID), reversed: true, limit: 1) { row in
            time = Timestamp(microseconds: try row.record.timeMicros)
            return false
        }
        return time
    }

    /// The place of a sequence; nil when the row is no longer kept.
    func revocationPlace(_ sequence: Int64) throws -> RevocationPlace? {
        guard sequence > 0 else { return .start }
        return try revocations(after: sequence - 1, limit: 1).first.flatMap {
            $0.sequence == sequence ? $0.place : nil
        }
    }

    /// The sequence of the oldest revocation that is kept.
    public func firstRevocationSequence() throws -> Int64 { try revocationSequence(reversed: false) }

    private func revocationSequence(reversed: Bool) throws -> Int64 {
        var sequence: Int64 = 0
        try scan(Tables.revocationTenants, reversed: reversed, limit: 1) { row in
            sequence = try row.key.sequence
            return false
        }
        return sequence
    }

    /// Up to `limit` revocations of all tenants after a sequence, in order. A lost revocation is an error, as a damaged
    /// one is: a reader that passed over it would accept the revoked tokens (docs/decisions/0149).
    public func revocations(after sequence: Int64, limit: Int) throws -> [SequencedRevocation] {
        var places: [(Int64, Text)] = []
        try scan(Tables.revocationTenants, from: .after(RevocationKey(sequence)), limit: limit) { row in
            places.append((try row.key.sequence, Text(unchecked: [UInt8](row.value))))
            return true
        }
        return try places.map { sequence, tenantID in
            guard let revocation = try get(Tables.revocations, SequenceKey(tenantID, sequence)) else {
                throw StoreError.corrupt(table: Tables.revocations.name.description)
            }
            return SequencedRevocation(sequence: sequence, revocation: revocation)
        }
    }

    /// The revocations of one tenant, and those that concern all tenants.
    public func revocations(of tenantID: Text, after sequence: Int64, limit: Int) throws -> [SequencedRevocation] {
        let own = try revocations(rows: tenantID, after: sequence, limit: limit)
        let everybodys = try revocations(rows: RevocationRows.everyTenant, after: sequence, limit: limit)
        guard !everybodys.isEmpty else { return own }
        return Array((own + everybodys).sorted { $0.sequence < $1.sequence }.prefix(limit))
    }

    /// The revocations of signing keys that are still kept.
    func revokedSigningKeys() throws -> [Revocation] {
        try revocations(rows: RevocationRows.everyTenant, after: 0, limit: 1_000).map(\.revocation)
    }

    private func revocations(rows: Text, after sequence: Int64, limit: Int) throws -> [SequencedRevocation] {
        var found: [SequencedRevocation] = []
        let start = ScanStart.after(SequenceKey(rows, sequence))
        try scan(Tables.revocations, prefix: TenantPrefix(rows), from: start, limit: limit) { row in
            found.append(SequencedRevocation(sequence: try row.key.sequence, revocation: try row.record))
            return true
        }
        return found
    }

    /// A sequence up to which all revocations were committed at `time` or before, as noted then (`noteRevocationTime`);
    /// 0 when none is known. The rows' own times do not count: a row must not look old because a clock was wrong when
    /// it was written.
    public func revocationSequence(before time: Timestamp) throws -> Int64 {
        try revocationNote(before: time)?.sequence ?? 0
    }

    /// The newest note of `time` or before. Calls `onDamage` for each damaged note that is newer.
    func revocationNote(
        before time: Timestamp, onDamage: () -> Void = {}
    ) throws -> (time: Timestamp, sequence: Int64)? {
        try noted(from: .at(TimeKey(time)), onDamage)
    }

    fileprivate func newestRevocationTime() throws -> (time: Timestamp, sequence: Int64)? { try noted(from: .first) {} }

    /// A damaged note tells nothing. The one before it makes revocations look younger, which is safe.
    private func noted(from start: ScanStart, _ onDamage: () -> Void) throws -> (time: Timestamp, sequence: Int64)? {
        var found: (Timestamp, Int64)?
        try scanKeys(of: Tables.revocationTimes, from: start, reversed: true) { key in
            do {
                let sequence = try withValue(Tables.revocationTimes, key) { RevocationKey(stored: $0)?.sequence ?? 0 }
                found = sequence.map { (key.time, $0) }
            } catch StoreError.corrupt {
                onDamage()
            }
            return found == nil
        }
        return found
    }
}
