import Base
public import Messages
public import Rules
import Store

// Creating, changing and deleting a tenant in the table of tenants.

extension Tenant {
    /// Creates the default pool, which every project has. Does nothing if it is there.
    func createDefaultPool() async throws {
        let now = resources.clock.now()
        let secret = resources.random.bytes(32)
        try await resources.store.write { transaction in
            guard try !transaction.exists(Tables.tenants, TenantPrefix(.empty)) else { return }
            // It must not come back with every toggle as in a new store.
            guard try !transaction.reading.hasLostDefaultPool() else {
                throw StoreError.corrupt(table: Tables.tenants.name.description)
            }
            let tenant = TenantSettings.defaults(tenantID: .empty, now: now)
            try transaction.put(Tables.tenants, TenantPrefix(.empty), StoredTenant(tenant: tenant, secret: secret))
            try transaction.appendEvent(.tenantCreated, tenantID: .empty, origin: .server, now: now)
        }
    }

    /// TENANT_ID_EXISTS.
    func create(
        _ change: TenantChange, template: TenantSettings?, isSynthetic: Bool, validateOnly: Bool, origin: Origin
    ) async throws -> Messages.Tenant {
        let tenantID = tenantID
        let now = resources.clock.now()
        var tenant = TenantSettings.defaults(tenantID: tenantID, now: now)
        tenant.synthetic = isSynthetic
        var paths = change.mask.paths
        if let template {
            let copied = try TenantTemplate.change(from: template, paths: [])
            _ = try copied.apply(to: &tenant, limits: resources.limits)
            paths = copied.mask.paths.filter { !paths.contains($0) } + paths
        }
        _ = try change.apply(to: &tenant, limits: resources.limits)
        let first = SettingsChange(of: tenant, paths: paths)
        let detail = template.map { Text("template \($0.tenantID)") } ?? .empty
        let wantedTenant = tenant
        let record = StoredTenant(tenant: tenant, secret: resources.random.bytes(32))
        return try await resources.store.write { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                guard try !transaction.exists(Tables.tenants, TenantPrefix(tenantID)) else {
                    throw Failure(
                        .tenantIDExists,
                        "There is or was a tenant \"\(tenantID)\"; an id is never used again, choose another.")
                }
                if validateOnly { return wantedTenant }
                try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
                try transaction.appendSettingsEvent(
                    .tenantCreated, first, tenantID: tenantID, origin: origin, detail: detail, now: now)
                return wantedTenant
            }
        }
    }

    /// Applies the masked settings; returns when they are durable and every new request sees them. Settings that have
    /// these values already are left alone. `expected`: the revision that the change was decided over, 0 for any.
    /// REVISION_MISMATCH.
    public func update(
        _ change: TenantChange, expected: Int64 = 0, validateOnly: Bool, origin: Origin
    ) async throws -> Messages.Tenant {
        let tenantID = tenantID
        let now = resources.clock.now()
        let limits = resources.limits
        return try await resources.store.write { transaction in
            let record = try transaction.reading.liveTenant(tenantID)
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                try Failure.requireRevision(expected, isStill: record.tenant?.revision ?? 0)
                let changed = try ChangedTenant(record, by: change, limits: limits, now: now)
                guard changed.isChange else { return record.tenant ?? Messages.Tenant() }
                if !validateOnly { try transaction.put(changed, origin: origin, now: now) }
                return changed.record.tenant ?? Messages.Tenant()
            }
        }
    }

    /// Deletes the tenant: nothing finds it once its tombstone is written; its rows are removed in slices after that.
    /// INVALID_TENANT_ID, TENANT_NOT_FOUND.
    public func delete(validateOnly: Bool, origin: Origin) async throws {
        let tenantID = tenantID
        guard !tenantID.isEmpty else {
            throw Failure.invalid(.invalidTenantID, field: "tenant_id", "the default pool cannot be deleted")
        }
        let now = resources.clock.now()
        let isDeleted = try await resources.store.write(for: .removal) { transaction in
            var isDeleted = false
            _ = try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                var record = try transaction.reading.tenantToDelete(tenantID)
                if validateOnly { return TenantsDeleteResponse() }
                record.deleted = true
                record.tenant?.revision += 1
                try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
                try transaction.appendRevocation(.tenantDeleted, tenantID: tenantID, now: now)
                // The tenant's own log is deleted with it.
                try transaction.appendEvent(
                    .tenantDeleted, tenantID: .empty, origin: origin, detail: tenantID, now: now)
                isDeleted = true
                return TenantsDeleteResponse()
            }
            return isDeleted
        }
        guard isDeleted else { return }
        try await finishDeletion()
    }

    /// Removes the rows of the deleted tenant. An interrupted removal goes on in a sweep or at the next start. Does
    /// nothing while a removal is running.
    func finishDeletion() async throws {
        guard !isPurging else { return }
        isPurging = true
        defer { isPurging = false }
        let (tenantID, log) = (tenantID, resources.log)
        try await resources.store.purgeTenant(tenantID, now: resources.clock.now()) { table in
            log.error(
                "damaged records of a deleted tenant were deleted with it",
                ["tenant": .text(tenantID.string), "error": .text("\(StoreError.corrupt(table: table))")])
        }
    }
}
