import Base
import Identity
import Messages
import Store

/// The one place that every call passes before its handler: who is calling, with what role, for which tenant, and
/// whether that tenant takes calls. The request is decoded for callers with the method's role only. No handler runs for
/// a caller who does not pass.
struct Gate: Sendable {
    let project: Project

    /// The caller behind `authorization`, or behind the connection's HELLO when there is none.
    func caller(
        authorization: UnsafeRawBufferPointer?, context: ConnectionContext
    ) throws -> Caller {
        guard let authorization else {
            guard !context.helloAuthorization.isEmpty else { throw Failure.callerUnauthenticated }
            return try context.helloAuthorization.withUnsafeBytes { try caller($0, context) }
        }
        return try caller(authorization, context)
    }

    private func caller(_ authorization: UnsafeRawBufferPointer, _ context: ConnectionContext) throws -> Caller {
        let version = project.callers.version
        if let known = context.cached(authorization, version: version, clock: project.clock) { return known }
        let found = try project.store.read { try project.callers.caller(authorization: authorization, in: $0) }
        guard let found else { throw Failure.callerUnauthenticated }
        context.cache(found, for: authorization, version: version)
        return found
    }

    /// The tenant of a call. In order: the caller's scope, TENANT_NOT_FOUND, TENANT_SUSPENDED, PROJECT_DISABLED.
    ///
    /// `requested` is nil for a request about any tenant: its handler checks the tenant it comes upon.
    func tenant(
        requested: Text?, caller: Caller?, rule: MethodDescriptor, context: ConnectionContext,
        in transaction: borrowing ReadTransaction
    ) throws -> (settings: TenantSettings, namedTenantID: Text) {
        switch rule.tenant {
        case .unspecified:
            try checkOwnTenant(of: caller, rule: rule, in: transaction)
            return (try settings(of: .empty, context: context, in: transaction), .empty)
        case .named:
            let requested = requested ?? .empty
            let named = try caller?.tenant(requested: requested) ?? requested
            return (try settings(of: .empty, context: context, in: transaction), named)
        case .request:
            guard let requested else {
                try checkOwnTenant(of: caller, rule: rule, in: transaction)
                return (try settings(of: .empty, context: context, in: transaction), .empty)
            }
            let tenantID = try caller?.tenant(requested: requested) ?? requested
            let settings = try settings(of: tenantID, context: context, in: transaction)
            try settings.checkOpen(to: caller, for: rule)
            return (settings, .empty)
        }
    }

    /// A method that is about no tenant is closed to the credentials of a suspended one all the same.
    private func checkOwnTenant(
        of caller: Caller?, rule: MethodDescriptor, in transaction: borrowing ReadTransaction
    ) throws {
        guard let caller, let own = caller.tenantID else { return }
        do {
            try project.tenants.settings(of: own, in: transaction).checkNotSuspended(for: caller, rule)
        } catch let failure as Failure where failure.reason == "TENANT_NOT_FOUND" {
            // The credential of a deleted tenant may go on asking what is about none.
        }
    }

    /// The generation is read first: settings that change meanwhile are looked up again next time.
    private func settings(
        of tenantID: Text, context: ConnectionContext, in transaction: borrowing ReadTransaction
    ) throws -> TenantSettings {
        let generation = project.tenants.generation
        if let known = context.settings(of: tenantID, generation: generation) { return known }
        let settings = try project.tenants.settings(of: tenantID, in: transaction)
        context.remember(settings, generation: generation)
        return settings
    }
}

extension TenantSettings {
    /// TENANT_SUSPENDED, PROJECT_DISABLED: whether the tenant takes calls of this method. Streams ask again whenever
    /// they look for something new.
    func checkOpen(to caller: Caller?, for rule: MethodDescriptor) throws(Failure) {
        try checkNotSuspended(for: caller, rule)
        if rule.refusedWhenDisabled && isAuthDisabled { throw .projectDisabled }
    }

    /// A project-admin goes on to work on a suspended tenant by the methods of admins: somebody must find out what
    /// happened there, and open or delete it. The methods of end users are closed to everybody.
    func checkNotSuspended(for caller: Caller?, _ rule: MethodDescriptor) throws(Failure) {
        guard isSuspended, !rule.allowedWhenSuspended else { return }
        let isAdminMethod = rule.role.rawValue >= Role.tenantAdmin.rawValue
        guard isAdminMethod, caller?.has(.projectAdmin) == true else { throw .tenantSuspended(self) }
    }
}
