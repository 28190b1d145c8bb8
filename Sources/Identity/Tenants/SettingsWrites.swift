public import Base
import Messages
import Rules
public import Store

// A change of settings writes the tenant's row, the revocation for its verifiers, and the event, which is the history.

/// A tenant's row as a change makes it, and the difference from the old row.
struct ChangedTenant {
    let record: StoredTenant
    let change: SettingsChange
    /// False: the settings had these values already. Then there is nothing to write.
    var isChange: Bool { !change.paths.isEmpty }
    private let mask: Text
    private let old: Messages.Tenant

    /// The refusals of `TenantChange.apply`.
    init(_ present: StoredTenant, by change: TenantChange, limits: Limits, now: Timestamp) throws(Failure) {
        var record = present
        let old = record.tenant ?? Messages.Tenant()
        var tenant = old
        self.mask = try change.apply(to: &tenant, limits: limits)
        tenant.updatedAtMicros = max(now.microseconds, tenant.updatedAtMicros &+ 1)
        tenant.revision &+= 1
        record.tenant = tenant
        self.old = old
        self.record = record
        self.change = SettingsChange(from: old, to: tenant, paths: change.mask.paths)
    }

    fileprivate func write(in transaction: borrowing WriteTransaction, origin: Origin, now: Timestamp) throws {
        guard let tenant = record.tenant else { return }
        let tenantID = tenant.tenantID
        try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
        if tenant.isShut != old.isShut {
            let kind: RevocationKind = tenant.isShut ? .tenantDisabled : .tenantEnabled
            try transaction.appendRevocation(kind, tenantID: tenantID, now: now)
        }
        try transaction.appendSettingsEvent(
            .tenantUpdated, change, tenantID: tenantID, origin: origin, detail: mask, now: now)
        if tenant.suspended != old.suspended {
            try transaction.appendEvent(
                tenant.suspended ? .tenantSuspended : .tenantResumed, tenantID: tenantID, origin: origin,
                detail: tenant.suspensionReason, now: now)
        }
    }
}

extension WriteTransaction {
    func put(_ changed: ChangedTenant, origin: Origin, now: Timestamp) throws {
        try changed.write(in: self, origin: origin, now: now)
    }

    /// Appends the event of a change, and notes the sequence by which the history finds it.
    func appendSettingsEvent(
        _ kind: EventKind, _ change: SettingsChange, tenantID: Text, origin: Origin, detail: Text, now: Timestamp
    ) throws {
        let sequence = try nextEventSequence(tenant: tenantID)
        try put(
            Tables.settingsChanges, SequenceKey(tenantID, change.revision),
            withUnsafeBytes(of: sequence.bigEndian) { [UInt8]($0) })
        try appendEvent(kind, tenantID: tenantID, origin: origin, detail: detail, settings: change, now: now)
    }

    /// Deletes up to `limit` rows of the history whose events, those up to `sequence`, are deleted. Returns whether
    /// there may be more. Changes nothing if it throws because of a damaged row.
    func forgetSettingsChanges(of tenantID: Text, upTo sequence: UInt64, limit: Int) throws -> Bool {
        var keys: [SequenceKey] = []
        try reading.scan(Tables.settingsChanges, prefix: TenantPrefix(tenantID), limit: limit) { row in
            guard row.value.bigEndianNumber <= sequence else { return false }
            keys.append(try row.key)
            return true
        }
        for key in keys { try delete(Tables.settingsChanges, key) }
        return keys.count == limit
    }
}

extension ReadTransaction {
    /// The events of a tenant's changes of settings, below `revision` (nil: from the newest), newest first, and the
    /// revision after which the next page begins.
    public func settingsChanges(
        tenantID: Text, before revision: Int64?, bounds: PageBounds
    ) throws -> (events: [StoredEvent], last: Int64?) {
        var events: [StoredEvent] = []
        let start = revision.map { ScanStart.after(SequenceKey(tenantID, $0)) } ?? .first
        let rows = try page(
            of: Tables.settingsChanges, prefix: TenantPrefix(tenantID), from: start, reversed: true, bounds: bounds
        ) { row in
            let sequence = row.value.bigEndianNumber
            // Events older than this one were deleted by their age, too.
            guard let (event, record) = try event(tenant: tenantID, sequence: sequence) else { return .end }
            events.append(event)
            // The item is the event itself, because the bytes of the events limit a page.
            return .item(record)
        }
        // The event that did not fit any more was read already; it begins the next page.
        events.removeLast(events.count - rows.items.count)
        return (events, rows.last?.sequence)
    }
}

extension Messages.Tenant {
    /// Whether the tenant's tokens are refused, as verifiers were told.
    var isShut: Bool { disableAuth || suspended }
}
