import Base
import Identity
import Messages
import Rules
import Store

/// The one place that every call passes before its handler: who is calling, with what role, for which tenant, and
/// whether that tenant takes calls. The request is decoded only for callers with the method's role. No handler runs for
/// a caller who does not pass.
struct Gate: Sendable {
    let service: ServiceContext
    private var project: Project { service.project }

    init(_ service: ServiceContext) { self.service = service }

    /// The caller behind `authorization`, or behind the connection's HELLO when there is none, within what the
    /// connection's certificate allows. Without any credential the certificate alone names the caller.
    func caller(
        authorization: UnsafeRawBufferPointer?, context: ConnectionContext
    ) throws -> Caller {
        guard let authorization else {
            guard !context.helloAuthorization.isEmpty || context.certificate != nil else {
                throw Failure.callerUnauthenticated
            }
            return try context.helloAuthorization.withUnsafeBytes { try caller($0, context) }
        }
        return try caller(authorization, context)
    }

    /// Empty bytes stand for no credential; so does an empty header.
    private func caller(_ authorization: UnsafeRawBufferPointer, _ context: ConnectionContext) throws -> Caller {
        if let known = context.caller(authorization, of: project.callers, clock: project.clock) { return known }
        let found = try project.store.read { transaction in
            try project.callers.caller(
                authorization: authorization.isEmpty ? nil : authorization, certificate: context.certificate,
                in: transaction
            ).map { transaction.dated($0) }
        }
        guard let found else { throw Failure.callerUnauthenticated }
        context.keep(found, for: authorization)
        if !found.value.secretHash.isEmpty { project.callers.uses.note(found.value.id) }
        return found.value
    }

    /// Admits a call of `caller` to the tenant that it is about. In order: the caller's scope, TENANT_NOT_FOUND,
    /// TENANT_SUSPENDED, PROJECT_DISABLED.
    ///
    /// `requestedTenantID` is nil for a request about any tenant: its handler checks the tenant that it finds.
    func admission(
        requestedTenantID requested: Text?, method: MethodDescriptor, caller: Caller?, context: ConnectionContext,
        in transaction: borrowing ReadTransaction
    ) throws -> Admission {
        var (tenantID, namedTenantID) = (Text.empty, Text.empty)
        switch (method.tenant, requested) {
        case (.named, _):
            namedTenantID = try caller?.tenant(requested: requested ?? .empty) ?? requested ?? .empty
        case (.request, let requested?):
            tenantID = try caller?.tenant(requested: requested) ?? requested
        case (.unspecified, _), (.request, nil):
            try checkOwnTenant(of: caller, rule: method, in: transaction)
        }
        let settings = try settings(of: tenantID, context: context, in: transaction)
        if method.tenant == .request, requested != nil { try settings.checkOpen(to: caller, for: method) }
        if method.tenant == .named {
            context.noteAdmitted(named: namedTenantID)
        } else if method.tenant == .request, requested != nil {
            context.noteAdmitted(settings.tenantID, countedIn: service.tenantCalls)
        }
        return Admission(
            service: service, method: method, caller: caller, settings: settings, namedTenantID: namedTenantID)
    }

    /// A method that is about no tenant is also closed to the credentials of a suspended tenant.
    private func checkOwnTenant(
        of caller: Caller?, rule: MethodDescriptor, in transaction: borrowing ReadTransaction
    ) throws {
        guard let caller, let own = caller.tenantID else { return }
        do {
            try project.tenants.settings(of: own, in: transaction).checkNotSuspended(for: caller, rule)
        } catch let failure as Failure where failure.is(.tenantNotFound) {
            // The credential of a deleted tenant may still call methods that are about no tenant.
        }
    }

    private func settings(
        of tenantID: Text, context: ConnectionContext, in transaction: borrowing ReadTransaction
    ) throws -> TenantSettings {
        if let known = context.settings(of: tenantID, in: project.tenants) { return known }
        let settings = try project.tenants.datedSettings(of: tenantID, in: transaction)
        context.lastSettings = settings
        return settings.value
    }
}

extension TenantSettings {
    /// Checks whether the tenant takes calls of this method: TENANT_SUSPENDED, PROJECT_DISABLED. Streams check again
    /// whenever they look for something new.
    func checkOpen(to caller: Caller?, for rule: MethodDescriptor) throws(Failure) {
        try checkNotSuspended(for: caller, rule)
        if rule.refusedWhenDisabled && isAuthDisabled { throw .projectDisabled }
    }

    /// A project-admin may still use the methods of admins on a suspended tenant: somebody must find out what happened
    /// there, and open or delete it. The methods of end users are closed to everybody.
    func checkNotSuspended(for caller: Caller?, _ rule: MethodDescriptor) throws(Failure) {
        guard isSuspended, !rule.allowedWhenSuspended else { return }
        let isAdminMethod = rule.role.rawValue >= Role.tenantAdmin.rawValue
        guard isAdminMethod, caller?.has(.projectAdmin) == true else { throw .tenantSuspended(self) }
    }
}
