import Base
import Identity
import Messages
import Rules
import Store
import Wire

extension Admission {
    /// Refuses a change before any work is done for it: QUOTA_EXCEEDED, and for a request with an idempotency key
    /// INVALID_IDEMPOTENCY_KEY and TOO_MANY_IDEMPOTENCY_KEYS. Methods that change nothing pass. Returns the key of a
    /// request that has one.
    func admitChange(
        _ request: RequestEnvelope, _ endUser: NamedEndUser, _ purpose: WritePurpose
    ) throws -> Idempotency? {
        guard method.mutation else { return nil }
        try checkQuotas(purpose)
        guard let key = request.metadata.idempotencyKey else { return nil }
        let limits = project.limits
        let idempotency = try Idempotency(
            key: key, caller: caller?.id ?? .empty, tenantID: tenantID, owner: callersTenantID,
            method: method.fullName, request: request.payload,
            endUser: endUser.bytes(settings: settings, project: project),
            hashKey: project.idempotencyHashKey, limits: limits)
        guard try project.store.read({ try $0.hasRoom(for: idempotency) }) else {
            project.idempotencyRefusals.add()
            throw Failure.tooManyIdempotencyKeys(max: limits.idempotencyRecordsPerSubjectMax)
        }
        return idempotency
    }

    /// QUOTA_EXCEEDED; TENANT_NOT_FOUND for a method about no tenant, if the caller's tenant was deleted. Streams check
    /// again before each change. Beyond a quota, a method that is allowed there may only end, remove or restrict
    /// something, and make no other change.
    func checkQuotas(_ purpose: WritePurpose = .relief) throws {
        guard let caller else { return }
        try project.store.read { transaction in
            let changed = try changedTenant(in: transaction)
            try project.tenants.quotas.admit(
                caller, settings: changed ?? settings, isAboutTenant: changed != nil,
                for: method.allowedBeyondQuota ? purpose : .growth, in: transaction)
        }
    }

    /// The settings of the tenant whose rows the call changes; nil for the project's rows.
    private func changedTenant(in transaction: borrowing ReadTransaction) throws -> TenantSettings? {
        if method.tenant == .request { return settings }
        guard let own = callersTenantID else { return nil }
        return try project.tenants.settings(of: own, in: transaction)
    }

    /// For a method about no tenant: the tenant of its caller, whose rows it changes. An admin who changes a key leaves
    /// an event in its own tenant's log. Nil for the project's rows.
    private var callersTenantID: Text? {
        guard method.tenant == .unspecified, let caller, !caller.has(.projectAdmin) else { return nil }
        return caller.tenantID
    }
}

extension StreamCall {
    /// Checks the quotas for a stream that only reads, but leaves an event about that. The event may use the reserve of
    /// changes that end something, so that the users of a full tenant can still be exported. QUOTA_EXCEEDED.
    func checkRecordQuotas() throws {
        guard let caller else { return }
        try project.store.read { transaction in
            try project.tenants.quotas.admit(
                caller, settings: settings, isAboutTenant: method.tenant == .request, for: .relief, in: transaction)
        }
    }
}

extension StreamCall {
    /// Runs a stream's handler. Writes outside of `charging` wait in the tenant's line as well, but are charged only
    /// when the stream ends. That is too late: it counts as a fault of the handler, which fails every test of it.
    func running(_ handler: () async throws -> Void) async throws {
        let meter = WriteMeter(tenant: payingTenantID)
        defer {
            if meter.changeCount > 0 { project.tenants.quotas.streamsChargedLate.add() }
            if let caller { project.tenants.quotas.charge(caller, settings: settings, meter) }
        }
        try await WriteMeter.$current.withValue(meter) { try await handler() }
    }
}

extension WaitingCall {
    /// The tenant in whose line the call's writes wait. A method about no tenant, or about any, is its caller's.
    fileprivate var payingTenantID: Text {
        method.tenant == .request ? settings.tenantID : caller?.tenantID ?? WriteMeter.project
    }

    /// Runs a call, whose writes are for `purpose` and wait in the tenant's line, and charges its caller for the writes
    /// of a change, also if it fails after the commit. A stream calls this for each of its writes; exports and backups
    /// write, too, and change nothing.
    ///
    /// Refreshing tokens is no change, and nobody is charged for it, but it writes as well.
    func charging<Result: Sendable>(
        _ purpose: WritePurpose = .growth, _ body: () async throws -> Result
    ) async throws -> Result {
        let meter = WriteMeter(tenant: payingTenantID, deadline: deadline)
        defer {
            if method.mutation || method.responseStreaming, let caller {
                project.tenants.quotas.charge(caller, settings: settings, meter)
            }
        }
        return try await WriteMeter.$current.withValue(meter) {
            if purpose == .growth { return try await body() }
            return try await WritePurpose.$current.withValue(purpose) { try await body() }
        }
    }
}
