public import Base
public import Messages
public import Store

extension WriteTransaction {
    /// Appends refusals, adds them to their hour's counts, and deletes the tenant's oldest ones above the limit.
    ///
    /// Once all tenants together have `denialsKeptInAll`, a tenant keeps no more than it has, but at least
    /// `denialsKeptAtLeast`. `deletesOldCounts`: whether counts may be deleted because of their age
    /// (`Resources.mayDeleteByAge`).
    func appendDenials(_ denials: [Denial], tenantID: Text, limits: Limits, deletesOldCounts: Bool) throws {
        let headKey = TenantPrefix(tenantID)
        var head = try get(Tables.denialHeads, headKey) ?? StoredDenialHead(lastSequence: 0, firstSequence: 1)
        var kept = Int64(limits.denialsKeptPerTenant)
        if try reading.count(Tables.denials) >= limits.denialsKeptInAll {
            let present = head.lastSequence - head.firstSequence + 1
            kept = min(kept, max(present, Int64(limits.denialsKeptAtLeast)))
        }
        for var denial in denials {
            head.lastSequence += 1
            denial.sequence = head.lastSequence
            try put(Tables.denials, SequenceKey(tenantID, denial.sequence), denial)
            let hour = denial.timeMicros - denial.timeMicros % Duration.hours(1).microseconds
            let countKey = DenialCountKey(
                tenantID, hour: Timestamp(microseconds: hour), toggle: UInt8(denial.toggle.rawValue),
                operation: denial.operation)
            let count = try get(Tables.denialCounts, countKey)?.count ?? 0
            try put(Tables.denialCounts, countKey, StoredCount(count: count + max(1, denial.suppressedCount)))
        }
        while head.lastSequence - head.firstSequence >= kept {
            try delete(Tables.denials, SequenceKey(tenantID, head.firstSequence))
            head.firstSequence += 1
        }
        try put(Tables.denialHeads, headKey, head)
        if deletesOldCounts { try deleteOldCounts(of: tenantID, besides: denials, limits: limits) }
    }

    /// Deletes the counts of the hours that began longer than `denialCountsKept` before the newest of `denials`: more
    /// than these can have added, but not all at once, because an older server never deleted any.
    private func deleteOldCounts(of tenantID: Text, besides denials: [Denial], limits: Limits) throws {
        guard let newest = denials.map(\.timeMicros).max() else { return }
        let end = Timestamp(microseconds: newest) - limits.denialCountsKept
        let countMax = denials.count + limits.sliceItemsMax
        var keys: [DenialCountKey] = []
        try reading.scanKeys(of: Tables.denialCounts, prefix: TenantPrefix(tenantID)) { key in
            guard key.hour < end, keys.count < countMax else { return false }
            keys.append(key)
            return true
        }
        for key in keys { try delete(Tables.denialCounts, key) }
    }
}

/// How often the operations of a tenant were refused, hour by hour, the newest hour first.
public struct DenialCounts: Sendable {
    public fileprivate(set) var counts: [DenialCount] = []
    /// The hours before this time are left out; nil if there are none.
    public fileprivate(set) var cutBefore: Timestamp?
}

extension ReadTransaction {
    /// The newest sequence of the tenant's refusals; 0 when there is none.
    public func lastDenialSequence(tenantID: Text) throws -> Int64 {
        try get(Tables.denialHeads, TenantPrefix(tenantID))?.lastSequence ?? 0
    }

    /// Refusals above `sequence` in their order, at most `limit`.
    public func denials(tenantID: Text, after sequence: Int64, limit: Int) throws -> [Denial] {
        try denials(tenantID: tenantID, from: .at(SequenceKey(tenantID, sequence + 1)), limit: limit)
    }

    /// How often each operation was refused in the hours that the range touches. When `limit` counts are read, the
    /// hours before are left out: an hour has all its counts.
    public func denialCounts(tenantID: Text, from: Timestamp, to: Timestamp, limit: Int) throws -> DenialCounts {
        var found = DenialCounts()
        // No refusal is older than 1970, and the key of a negative time is behind all others.
        guard to > .zero else { return found }
        let hour = Duration.hours(1).microseconds
        let first = Timestamp(microseconds: max(0, from.microseconds - from.microseconds % hour))
        let end = DenialCountKey(tenantID, hour: to, toggle: 0, operation: .empty)
        try scan(
            Tables.denialCounts, prefix: TenantPrefix(tenantID), from: .at(end), reversed: true
        ) { row in
            let key = try row.key
            guard key.hour >= first else { return false }
            if found.counts.count >= limit, let last = found.counts.last?.hourStartMicros,
                key.hour.microseconds < last
            {
                found.cutBefore = Timestamp(microseconds: last)
                return false
            }
            found.counts.append(
                DenialCount(
                    hourStartMicros: key.hour.microseconds, operation: key.operation,
                    toggle: Toggle(rawValue: Int32(key.toggle)) ?? .unspecified, count: try row.record.count))
            return true
        }
        return found
    }

    private func denials(tenantID: Text, from start: ScanStart, limit: Int) throws -> [Denial] {
        var found: [Denial] = []
        try scan(Tables.denials, prefix: TenantPrefix(tenantID), from: start, limit: limit) { row in
            found.append(try row.record)
            return true
        }
        return found
    }
}
