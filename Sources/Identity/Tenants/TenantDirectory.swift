public import Base
import Crypto
public import Messages
public import Reactor
public import Store
import Synchronization

/// All tenants: their published settings, which requests read without waiting, and their actors, made on demand.
///
/// A change is published before it is acknowledged, and an older revision never replaces a newer one, so that a reader
/// that saw the store before the change cannot put the old settings back.
public final class TenantDirectory: Sendable {
    private struct Entry {
        var settings: TenantSettings
        var isDeleted: Bool
        var actor: Tenant?
        var publishedAt: Instant
    }

    private let entries = Mutex<[Text: Entry]>([:])
    private let generationCounter = Atomic<UInt64>(1)
    private let resources: Resources
    private let loops: EventLoopGroup
    private static let entriesMax = 50_000
    /// What tenants and their callers use of their quotas.
    public let quotas: QuotaLedger

    public init(resources: Resources, loops: EventLoopGroup) {
        self.quotas = QuotaLedger(resources: resources)
        self.resources = resources
        self.loops = loops
    }

    /// Changes whenever any tenant's settings do: a cached snapshot is good while this stays.
    public var generation: UInt64 { generationCounter.load(ordering: .acquiring) }

    /// The present settings, or TENANT_NOT_FOUND.
    public func settings(
        of tenantID: Text, in transaction: borrowing ReadTransaction
    ) throws -> TenantSettings {
        if let known = entries.withLock({ $0[tenantID] }) { return try Self.live(known) }
        guard let record = try transaction.get(Tables.tenants, TenantPrefix(tenantID)) else {
            throw Failure.tenantNotFound(tenantID)
        }
        return try Self.live(remember(TenantSettings(record), isDeleted: record.deleted))
    }

    /// The tenant's owner.
    public func tenant(_ settings: TenantSettings) -> Tenant {
        entries.withLock { entries in
            if let actor = entries[settings.tenantID]?.actor { return actor }
            let hash = UInt64(truncatingIfNeeded: settings.tenantID.hashValue)
            let actor = Tenant(
                settings: settings, directory: self, resources: resources, loop: loops.loop(for: hash))
            entries[settings.tenantID, default: Self.entry(settings, isDeleted: false)].actor = actor
            return actor
        }
    }

    /// Makes the default pool if there is none. At start.
    public func start() async throws {
        let now = resources.clock.now()
        let secret = resources.random.bytes(32)
        try await resources.store.write { transaction in
            guard try !transaction.exists(Tables.tenants, TenantPrefix(.empty)) else { return }
            let tenant = TenantSettings.defaults(tenantID: .empty, now: now)
            try transaction.put(Tables.tenants, TenantPrefix(.empty), StoredTenant(tenant: tenant, secret: secret))
            try transaction.appendEvent(.tenantCreated, tenantID: .empty, origin: .server, now: now)
        }
        try await resumeDeletions()
    }

    /// Creates a tenant. INVALID_TENANT_ID, TENANT_ID_EXISTS.
    public func create(
        tenantID wanted: Text, change: TenantChange, isSynthetic: Bool, validateOnly: Bool, origin: Origin
    ) async throws -> Messages.Tenant {
        let tenantID = wanted.isEmpty ? resources.random.alphanumeric(20, lowercase: true) : wanted
        try Values.checkTenantID(tenantID)
        let now = resources.clock.now()
        var tenant = TenantSettings.defaults(tenantID: tenantID, now: now)
        tenant.synthetic = isSynthetic
        _ = try change.apply(to: &tenant, limits: resources.limits)
        let wantedTenant = tenant
        let record = StoredTenant(tenant: tenant, secret: resources.random.bytes(32))
        let made = try await resources.store.write { transaction in
            try transaction.once(validateOnly ? .server : origin, now: now) {
                guard try !transaction.exists(Tables.tenants, TenantPrefix(tenantID)) else {
                    throw Failure(
                        .tenantIDExists,
                        "There is or was a tenant \"\(tenantID)\"; an id is never used again, choose another.")
                }
                if validateOnly { return wantedTenant }
                try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
                try transaction.appendEvent(.tenantCreated, tenantID: tenantID, origin: origin, now: now)
                return wantedTenant
            }
        }
        guard !validateOnly, made == wantedTenant else { return made }
        return publish(TenantSettings(record)).tenant
    }

    /// Deletes a tenant: nothing finds it from the answer on; its rows go in slices behind that.
    public func delete(tenantID: Text, validateOnly: Bool, origin: Origin) async throws {
        guard !tenantID.isEmpty else {
            throw Failure.invalid(.invalidTenantID, field: "tenant_id", "the default pool cannot be deleted")
        }
        let now = resources.clock.now()
        let deleted: StoredTenant? = try await resources.store.write(for: .removal) { transaction in
            var deleted: StoredTenant?
            _ = try transaction.once(validateOnly ? .server : origin, now: now) {
                var record = try transaction.reading.liveTenant(tenantID)
                if validateOnly { return TenantsDeleteResponse() }
                record.deleted = true
                record.tenant?.revision += 1
                try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
                try transaction.appendRevocation(.tenantDeleted, tenantID: tenantID, now: now)
                // The tenant's own log goes with it.
                try transaction.appendEvent(
                    .tenantDeleted, tenantID: .empty, origin: origin, detail: tenantID, now: now)
                deleted = record
                return TenantsDeleteResponse()
            }
            return deleted
        }
        guard let record = deleted else { return }
        _ = remember(TenantSettings(record), isDeleted: true)
        try await resources.store.purgeTenant(tenantID, now: now)
    }

    /// Tenants in the order of their ids, behind `last`; deleted ones are left out.
    public func list(
        after last: Text?, limit: Int, in transaction: borrowing ReadTransaction
    ) throws -> [Messages.Tenant] {
        let start = last.map { ScanStart.after(TenantPrefix($0)) } ?? .first
        var tenants: [Messages.Tenant] = []
        try transaction.scan(Tables.tenants, from: start) { row in
            let record = try row.record
            if !record.deleted, let tenant = record.tenant { tenants.append(tenant) }
            return tenants.count < limit
        }
        return tenants
    }

    /// What `Tenant.update` and `create` call between commit and acknowledgement.
    func publish(_ settings: TenantSettings) -> TenantSettings {
        remember(settings, isDeleted: false).settings
    }

    private func remember(_ settings: TenantSettings, isDeleted: Bool) -> Entry {
        let entry = entries.withLock { entries in
            if entries.count >= Self.entriesMax { Self.forgetQuiet(&entries) }
            var entry = entries[settings.tenantID] ?? Self.entry(settings, isDeleted: isDeleted)
            if settings.revision > entry.settings.revision {
                entry.settings = settings
                entry.isDeleted = isDeleted
                entry.publishedAt = .now
            }
            entries[settings.tenantID] = entry
            return entry
        }
        generationCounter.add(1, ordering: .acquiringAndReleasing)
        // Not with the commit: who is woken reads what is published here.
        resources.changes.announce([.tenant(settings.tenantID)])
        return entry
    }

    /// Makes room. A minute is far longer than any read transaction, so nobody can bring older settings back.
    private static func forgetQuiet(_ entries: inout [Text: Entry]) {
        let minuteAgo = Instant(nanoseconds: Instant.now.nanoseconds - 60_000_000_000)
        entries = entries.filter { $0.value.actor != nil || $0.value.publishedAt > minuteAgo }
    }

    private static func entry(_ settings: TenantSettings, isDeleted: Bool) -> Entry {
        Entry(settings: settings, isDeleted: isDeleted, actor: nil, publishedAt: .now)
    }

    private static func live(_ entry: Entry) throws -> TenantSettings {
        if entry.isDeleted { throw Failure.tenantNotFound(entry.settings.tenantID) }
        return entry.settings
    }

    /// Finishes deletions that a stop interrupted.
    private func resumeDeletions() async throws {
        let unfinished = try resources.store.read { transaction in
            var ids: [Text] = []
            try transaction.scan(Tables.tenants) { row in
                let record = try row.record
                if record.deleted, !record.purged, let tenant = record.tenant { ids.append(tenant.tenantID) }
                return true
            }
            return ids
        }
        for tenantID in unfinished {
            try await resources.store.purgeTenant(tenantID, now: resources.clock.now())
        }
    }
}
