import Base
import Messages
public import Rules
import Store

// The only place that puts rows of the table of tenants.

extension Tenant {
    /// The pool that there always is. Nothing happens where it is there.
    func createDefaultPool() async throws {
        let now = resources.clock.now()
        let secret = resources.random.bytes(32)
        try await resources.store.write { transaction in
            guard try !transaction.exists(Tables.tenants, TenantPrefix(.empty)) else { return }
            let tenant = TenantSettings.defaults(tenantID: .empty, now: now)
            try transaction.put(Tables.tenants, TenantPrefix(.empty), StoredTenant(tenant: tenant, secret: secret))
            try transaction.appendEvent(.tenantCreated, tenantID: .empty, origin: .server, now: now)
        }
    }

    /// TENANT_ID_EXISTS.
    func create(
        _ change: TenantChange, isSynthetic: Bool, validateOnly: Bool, origin: Origin
    ) async throws -> Messages.Tenant {
        let tenantID = tenantID
        let now = resources.clock.now()
        var tenant = TenantSettings.defaults(tenantID: tenantID, now: now)
        tenant.synthetic = isSynthetic
        _ = try change.apply(to: &tenant, limits: resources.limits)
        let wantedTenant = tenant
        let record = StoredTenant(tenant: tenant, secret: resources.random.bytes(32))
        return try await resources.store.write { transaction in
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
    }

    /// Applies the masked settings; returns when they are durable and every new request sees them.
    public func update(
        _ change: TenantChange, validateOnly: Bool, origin: Origin
    ) async throws -> TenantSettings {
        let tenantID = tenantID
        let now = resources.clock.now()
        let limits = resources.limits
        let record = try await resources.store.write { transaction in
            var record = try transaction.reading.liveTenant(tenantID)
            var tenant = record.tenant ?? Messages.Tenant()
            let (wasShut, wasSuspended) = (tenant.isShut, tenant.suspended)
            let fields = try change.apply(to: &tenant, limits: limits)
            tenant.updatedAtMicros = max(now.microseconds, tenant.updatedAtMicros + 1)
            tenant.revision += 1
            record.tenant = tenant
            if validateOnly { return record }
            try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
            if tenant.isShut != wasShut {
                let kind: RevocationKind = tenant.isShut ? .tenantDisabled : .tenantEnabled
                try transaction.appendRevocation(kind, tenantID: tenantID, now: now)
            }
            try transaction.appendEvent(.tenantUpdated, tenantID: tenantID, origin: origin, detail: fields, now: now)
            if tenant.suspended != wasSuspended {
                try transaction.appendEvent(
                    tenant.suspended ? .tenantSuspended : .tenantResumed, tenantID: tenantID, origin: origin,
                    detail: tenant.suspensionReason, now: now)
            }
            return record
        }
        return TenantSettings(record)
    }

    /// Deletes the tenant: nothing finds it from the answer on; its rows go in slices behind that. INVALID_TENANT_ID,
    /// TENANT_NOT_FOUND.
    public func delete(validateOnly: Bool, origin: Origin) async throws {
        let tenantID = tenantID
        guard !tenantID.isEmpty else {
            throw Failure.invalid(.invalidTenantID, field: "tenant_id", "the default pool cannot be deleted")
        }
        let now = resources.clock.now()
        let isDeleted = try await resources.store.write(for: .removal) { transaction in
            var isDeleted = false
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
                isDeleted = true
                return TenantsDeleteResponse()
            }
            return isDeleted
        }
        guard isDeleted else { return }
        try await finishDeletion()
    }

    /// Removes the rows of the tenant, which is deleted. What is interrupted goes on in a sweep or at the next start.
    /// Does nothing while it is being done.
    func finishDeletion() async throws {
        guard !isPurging else { return }
        isPurging = true
        defer { isPurging = false }
        try await resources.store.purgeTenant(tenantID, now: resources.clock.now())
    }
}

extension Messages.Tenant {
    /// Whether the tenant's tokens are refused, as verifiers were told.
    var isShut: Bool { disableAuth || suspended }
}
