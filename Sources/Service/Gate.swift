import Base
import Identity
import Messages
import Rules
import Store

/// The one place that every call passes before its handler: who is calling, with what role, for which tenant, and
/// whether that tenant takes calls. The request is decoded only for callers with the method's role. No handler runs for
/// a caller who does not pass.
final class Gate: Sendable {
    let service: ServiceContext
    let project: Project

    init(_ service: ServiceContext) {
        self.service = service
        self.project = service.project
    }

    /// The caller behind `authorization`, or behind the connection's HELLO when there is none, within what the
    /// connection's certificate allows. Without any credential the certificate alone names the caller.
    func caller(
        authorization: UnsafeRawBufferPointer?, context: ConnectionContext
    ) throws -> Caller {
        let isKnown = service.lent.callers._withUnsafeGuaranteedRef {
            context.hasCaller(of: authorization, in: $0)
        }
        if isKnown, let known = context.lastCaller { return known }
        let found: Dated<Caller>
        if let authorization {
            found = try find(authorization, context)
        } else {
            guard !context.helloAuthorization.isEmpty || context.certificate != nil else {
                throw Failure.callerUnauthenticated
            }
            found = try context.helloAuthorization.withUnsafeBytes { try find($0, context) }
        }
        context.keep(found, for: authorization, in: project.callers)
        if found.value.hasSecret { project.callers.uses.note(found.value.id) }
        return found.value
    }

    /// Empty bytes stand for no credential; so does an empty header.
    private func find(_ authorization: UnsafeRawBufferPointer, _ context: ConnectionContext) throws -> Dated<Caller> {
        let found: Dated<Caller>? = try project.store.read { transaction in
            try project.callers.caller(
                authorization: authorization.isEmpty ? nil : authorization, certificate: context.certificate,
                in: transaction
            ).map { transaction.dated($0) }
        }
        guard let found else { throw project.callers.refusal(of: authorization) }
        return found
    }

    /// Admits a call of `caller` to the tenant that it is about. In order: the caller's scope, TENANT_NOT_FOUND,
    /// TENANT_SUSPENDED, PROJECT_DISABLED. Afterwards the context's `settings` are the settings of this tenant, or of
    /// the default pool for methods that are about no tenant.
    ///
    /// `requestedTenantID` is nil for a request about any tenant: its handler checks the tenant that it finds. Returns
    /// the tenant that the request names if the gate did not look for it, and otherwise nil.
    func admit(
        requestedTenantID requested: Text?, method: MethodDescriptor, caller: Caller?, context: ConnectionContext,
        in transaction: borrowing ReadTransaction
    ) throws -> Text? {
        switch (method.tenant, requested) {
        case (.named, _):
            let named = try caller?.tenant(requested: requested ?? .empty) ?? requested ?? .empty
            try keepSettings(of: .empty, in: context, transaction)
            context.noteAdmitted(named: named)
            // "" means the default pool.
            return named.isEmpty ? nil : named
        case (.request, let requested?):
            try keepSettings(of: try caller?.tenant(requested: requested) ?? requested, in: context, transaction)
            if !context.isOpenToAll { try context.settings.checkOpen(to: caller, for: method) }
            service.lent.tenantCalls._withUnsafeGuaranteedRef { context.noteAdmitted(countedIn: $0) }
        case (.unspecified, _), (.request, nil):
            try checkOwnTenant(of: caller, rule: method, in: transaction)
            try keepSettings(of: .empty, in: context, transaction)
        }
        return nil
    }

    /// Admits a call that waits, as `admit` does. The admission keeps the values that the context has for this call
    /// only.
    func admission(
        requestedTenantID: Text?, method: MethodDescriptor, caller: Caller?, context: ConnectionContext,
        in transaction: borrowing ReadTransaction
    ) throws -> Admission {
        let named = try admit(
            requestedTenantID: requestedTenantID, method: method, caller: caller, context: context, in: transaction)
        return Admission(
            service: service, method: method, caller: caller, settings: context.settings, namedTenantID: named)
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

    private func keepSettings(
        of tenantID: Text, in context: ConnectionContext, _ transaction: borrowing ReadTransaction
    ) throws {
        if context.hasSettings(of: tenantID, in: project.tenants) { return }
        context.keep(try project.tenants.datedSettings(of: tenantID, in: transaction))
    }
}

extension TenantSettings {
    /// Checks whether the tenant takes calls of this method: TENANT_SUSPENDED, PROJECT_DISABLED. Streams check again
    /// whenever they look for something new.
    func checkOpen(to caller: Caller?, for rule: MethodDescriptor) throws(Failure) {
        if isOpenToAll || Self.isExempt(caller, for: rule) { return }
        try checkNotSuspended(for: caller, rule)
        if rule.refusedWhenDisabled && isAuthDisabled { throw .projectDisabled }
    }

    /// Whether the tenant takes all calls of all callers. The gate asks only this for most calls.
    var isOpenToAll: Bool { !isSuspended && !isAuthDisabled }

    func checkNotSuspended(for caller: Caller?, _ rule: MethodDescriptor) throws(Failure) {
        guard isSuspended, !rule.allowedWhenSuspended, !Self.isExempt(caller, for: rule) else { return }
        throw .tenantSuspended(self)
    }

    /// A project-admin may still use the methods of admins on a closed tenant: somebody must find out what happened
    /// there, take its users elsewhere, and open or delete it. The methods of end users are closed to everybody.
    private static func isExempt(_ caller: Caller?, for rule: MethodDescriptor) -> Bool {
        rule.role.rawValue >= Role.tenantAdmin.rawValue && caller?.has(.projectAdmin) == true
    }
}
