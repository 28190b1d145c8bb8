public import Base
public import Messages
public import Rules
public import Store

extension TenantDirectory {
    /// Changes the settings of the next tenants after `last` that match the query, at most `countMax`. Returns the
    /// changes of each tenant, and the page token with which to go on: `pageToken` makes it of the last tenant, which
    /// is nil when none is left.
    ///
    /// A tenant that has these settings already is left alone. Tenants that are changed stay changed when the call ends
    /// early.
    public func update(
        _ query: TenantQuery, by change: TenantChange, after last: Text?, countMax: Int, validateOnly: Bool,
        origin: Origin, pageToken: (Text?) -> Text
    ) async throws -> TenantsUpdateManyResponse {
        try await resources.answeringRepeat(
            ofSeveralWrites: origin, validateOnly: validateOnly, shortened: { $0.withoutValues() }
        ) {
            let (results, next) = try await updateEach(
                query, by: change, after: last, countMax: countMax, validateOnly: validateOnly, origin: origin)
            return TenantsUpdateManyResponse(results: results, nextPageToken: pageToken(next))
        }
    }

    private func updateEach(
        _ query: TenantQuery, by change: TenantChange, after last: Text?, countMax: Int, validateOnly: Bool,
        origin: Origin
    ) async throws -> (results: [TenantUpdateResult], last: Text?) {
        let limits = resources.limits
        let (ids, next) = try resources.store.read {
            try $0.tenantIDs(query, after: last, bounds: PageBounds(itemMax: countMax, limits: limits))
        }
        let now = resources.clock.now()
        let results = try await resources.store.write(each: ids) { transaction, tenantID -> TenantUpdateResult? in
            // Another call may have changed or deleted the tenant meanwhile.
            guard let record = try transaction.get(Tables.tenants, TenantPrefix(tenantID)), !record.deleted,
                let tenant = record.tenant, query.matches(tenant)
            else { return nil }
            let changed = try ChangedTenant(record, by: change, limits: limits, now: now)
            guard changed.isChange else { return TenantUpdateResult(tenantID: tenantID) }
            if !validateOnly { try transaction.put(changed, origin: origin, now: now) }
            return TenantUpdateResult(tenantID: tenantID, change: changed.change)
        }
        return (results.compactMap(\.self), next)
    }

    /// Copies settings from a template to a tenant. TEMPLATE_NOT_FOUND, INVALID_UPDATE_MASK, TENANT_NOT_FOUND.
    public func copySettings(
        _ paths: [Text], from templateID: Text, to tenantID: Text, validateOnly: Bool, origin: Origin
    ) async throws -> Messages.Tenant {
        // The template of a repeated request may be deleted by now.
        if !validateOnly, let again: Messages.Tenant = try resources.earlierAnswer(to: origin) { return again }
        let change = try TenantTemplate.change(from: template(templateID), paths: paths)
        return try await tenant(tenantID).update(change, validateOnly: validateOnly, origin: origin)
    }

    /// The settings of a template, a tenant from which others take theirs. TEMPLATE_NOT_FOUND, also for an empty id.
    ///
    /// Elsewhere an empty id is the default pool. Here it would make a request that lost the template's id overwrite a
    /// tenant's settings.
    public func template(_ tenantID: Text) throws -> TenantSettings {
        guard !tenantID.isEmpty else {
            throw Failure(.templateNotFound, "The id of the template is empty. The default pool is no template.")
        }
        do {
            return try resources.store.read { try settings(of: tenantID, in: $0) }
        } catch let failure as Failure where failure.is(.tenantNotFound) {
            throw Failure(.templateNotFound, "There is no tenant \"\(tenantID)\" to take settings from.")
        }
    }
}

extension TenantsUpdateManyResponse {
    /// The answer without the settings before and after each change, which may be long.
    fileprivate func withoutValues() -> TenantsUpdateManyResponse {
        var short = self
        for index in short.results.indices {
            short.results[index].change?.before = nil
            short.results[index].change?.after = nil
        }
        return short
    }
}

extension ReadTransaction {
    /// Tenants after `last` that match the query, in the order of their ids, as they lie in the map.
    public func tenants(
        _ query: TenantQuery, after last: Text?, bounds: PageBounds
    ) throws -> StoredPage<TenantPrefix> {
        // A key ends its tenant's id with a zero byte, so the ids with a prefix begin at the prefix's own place, and
        // follow each other.
        let first = query.tenantIDPrefix.isEmpty ? ScanStart.first : .at(TenantPrefix(query.tenantIDPrefix))
        return try page(
            of: Tables.tenants, from: last.map { .after(TenantPrefix($0)) } ?? first, bounds: bounds
        ) { row in
            guard try row.key.tenant.bytes.starts(with: query.tenantIDPrefix.bytes) else { return .end }
            let record = try row.record
            guard !record.deleted, let tenant = record.tenant, query.matches(tenant) else { return .skipped }
            var fields = FieldReader(row.value)
            while let field = try fields.next() {
                if field.number == StoredTenant.FieldNumber.tenant, case .bytes(let bytes) = field.value {
                    return .item(bytes)
                }
            }
            return .skipped
        }
    }

    fileprivate func tenantIDs(
        _ query: TenantQuery, after last: Text?, bounds: PageBounds
    ) throws -> (ids: [Text], last: Text?) {
        let page = try tenants(query, after: last, bounds: bounds)
        return (try page.items.map { try Messages.Tenant(stored: $0).tenantID }, page.last?.tenant)
    }
}
