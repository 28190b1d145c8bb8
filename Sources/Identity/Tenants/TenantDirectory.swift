public import Base
public import Crypto
public import Messages
public import Reactor
public import Rules
public import Store
import Synchronization

/// All tenants: their settings, which requests read without waiting, and their actors, made on demand.
public final class TenantDirectory: Sendable {
    /// Nil for a deleted tenant.
    private let copies: RowCopies<TenantPrefix, StoredTenant, TenantSettings?>
    private let mark: TableMark
    private let owners = TenantOwners()
    let orphanedCredentials: OrphanedCredentials
    let resources: Resources
    private let loops: EventLoopGroup
    private static let copiesMax = 50_000
    /// The last tenant that a sweep has looked at; nil = it begins with the first.
    private let sweptUntil = Mutex<TenantPrefix?>(nil)
    private static let sweptTenantsMax = 5_000
    /// Whether the next sweep looks at all tenants: a server that was killed may have left deletions half done.
    private let looksAtAll = Mutex<Bool>(false)
    /// The use of the quotas of tenants and their callers.
    public let quotas: QuotaLedger
    public let denialIdentifiers: DenialIdentifiers

    public init(resources: Resources, masterKey: MasterKey, loops: EventLoopGroup) {
        self.denialIdentifiers = DenialIdentifiers(masterKey: masterKey)
        self.quotas = QuotaLedger(resources: resources)
        self.orphanedCredentials = OrphanedCredentials(resources: resources)
        self.copies = RowCopies(
            "tenant settings", of: Tables.tenants, in: resources.store, countMax: Self.copiesMax
        ) { _, record in
            record.deleted ? nil : TenantSettings(record)
        }
        self.mark = copies.mark
        self.resources = resources
        self.loops = loops
    }

    /// The present settings, or TENANT_NOT_FOUND.
    public func settings(of tenantID: Text, in transaction: borrowing ReadTransaction) throws -> TenantSettings {
        try datedSettings(of: tenantID, in: transaction).value
    }

    /// The present settings, or TENANT_NOT_FOUND, for a caller that keeps the settings while `isCurrent`.
    public func datedSettings(
        of tenantID: Text, in transaction: borrowing ReadTransaction
    ) throws -> Dated<TenantSettings> {
        guard let found = try copies.value(TenantPrefix(tenantID), in: transaction)?.map({ $0 }) else {
            throw Failure.tenantNotFound(tenantID)
        }
        return found
    }

    /// False once the settings of any tenant were changed after that moment.
    public func isCurrent(asOf snapshot: Snapshot) -> Bool { mark.isCurrent(asOf: snapshot) }

    /// The tenant's owner, also for a tenant that does not exist yet: the owner creates, changes and deletes the
    /// tenant.
    public func tenant(_ tenantID: Text) -> Tenant {
        owners.owner(of: tenantID, now: resources.steadyClock.now()) {
            let hash = UInt64(truncatingIfNeeded: tenantID.hashValue)
            return Tenant(tenantID, quotas: quotas, resources: resources, loop: loops.loop(for: hash))
        }
    }

    /// How many owners there are in memory.
    var ownerCount: Int { owners.count }

    /// Releases, in the sweep, the owners whose counts no longer matter.
    func forgetIdle() { owners.forgetIdle(now: resources.steadyClock.now()) }

    /// At start, makes the default pool if there is none. The time of a start must not grow with the number of tenants.
    public func start() async throws {
        try await tenant(.empty).createDefaultPool()
        looksAtAll.withLock { $0 = true }
    }

    /// Finishes, in the sweep, deletions that failed, that were interrupted, or that another node began. The first
    /// sweep looks at all tenants, each later sweep at some of them in turn.
    func finishSomeDeletions() async throws {
        if looksAtAll.withLock({ $0 }) {
            var last: TenantPrefix?
            repeat { last = try await finishDeletions(after: last) } while last != nil
            looksAtAll.withLock { $0 = false }
            return
        }
        let last = sweptUntil.withLock { $0 }
        let next = try await finishDeletions(after: last)
        sweptUntil.withLock { $0 = next }
    }

    /// Creates a tenant, under a random id if `tenantID` is empty. INVALID_TENANT_ID,
    /// TEMPLATE_NOT_FOUND, TENANT_ID_EXISTS.
    public func create(
        tenantID wanted: Text, change: TenantChange, templateID: Text = .empty, isSynthetic: Bool, validateOnly: Bool,
        origin: Origin
    ) async throws -> Messages.Tenant {
        let tenantID = wanted.isEmpty ? resources.random.alphanumeric(20, lowercase: true) : wanted
        try Values.checkTenantID(tenantID)
        // The template of a repeated request may be deleted by now.
        if !validateOnly, let again: Messages.Tenant = try resources.earlierAnswer(to: origin) { return again }
        let template = try templateID.isEmpty ? nil : template(templateID)
        return try await tenant(tenantID).create(
            change, template: template, isSynthetic: isSynthetic, validateOnly: validateOnly, origin: origin)
    }

    /// Tenants in the order of their ids, after `last`; deleted ones are left out.
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

    /// Finishes the deletions among the next tenants after `last`. Returns the last one, nil when there are no more.
    ///
    /// A tenant with a damaged record stays as it is, and does not keep the others.
    private func finishDeletions(after last: TenantPrefix?) async throws -> TenantPrefix? {
        let damaged = resources.damagedRecords
        let (unfinished, next) = try resources.store.read { transaction in
            var ids: [Text] = []
            let next = try transaction.eachTenant(
                after: last, limit: Self.sweptTenantsMax, passingOver: damaged
            ) { tenantID, record in
                if record.deleted, !record.purged { ids.append(tenantID) }
            }
            return (ids, next)
        }
        for tenantID in unfinished {
            do {
                try await tenant(tenantID).finishDeletion()
            } catch StoreError.corrupt(let table) {
                damaged.passOver(tenantID, table: table)
            }
        }
        return next
    }
}
