import Base
import Identity
import Messages
import Store

/// What a handler knows about its call, after the gate let it pass.
struct Call: Sendable {
    let service: ServiceContext
    let method: RegisteredMethod
    /// Nil only for methods that need no credential.
    let caller: Caller?
    /// The tenant's settings as the call began; of the default pool for methods that are about no tenant.
    let settings: TenantSettings
    /// The tenant that the request names where the gate did not look for it (`TENANT_RULE_NAMED`).
    let namedTenantID: Text
    // The rest is for calls that wait; empty in fast ones, which change nothing.
    let requestID: Text
    let peerAddress: Text
    let deadline: Instant
    /// For mutations whose caller sent an idempotency-key.
    var idempotency: Idempotency?

    /// The tenant the request means.
    var tenantID: Text { namedTenantID.isEmpty ? settings.tenantID : namedTenantID }
    var project: Project { service.project }
    var limits: Limits { service.project.limits }
    var now: Timestamp { service.project.clock.now() }

    /// Who asked, for the event log.
    var origin: Origin {
        Origin(
            actor: caller?.id ?? .empty, requestID: requestID, peerAddress: peerAddress, idempotency: idempotency)
    }

    /// What the request says about the end user it is made for; for methods that tell it.
    func endUserRequest(
        idToken: Text = .empty, endUserIP: Text = .empty, deviceName: Text = .empty, deviceToken: Text = .empty
    ) -> EndUserRequest {
        var request = EndUserRequest(
            caller: caller, settings: settings, origin: origin, operation: method.descriptor.fullName,
            deadline: deadline)
        request.idToken = idToken
        request.endUserIP = endUserIP
        request.deviceName = deviceName
        request.deviceToken = deviceToken
        return request
    }
}

extension Call {
    /// The owner of a user of this call's tenant.
    func userSession(_ uid: Text) -> UserSession { project.users.session(tenantID: settings.tenantID, uid: uid) }

    /// Proves the end user: a genuine ID token of this tenant that is not revoked.
    func verifiedUser(idToken: Text) throws -> VerifiedUser {
        try project.tokenCheck.verifiedUser(idToken, settings: settings, store: project.store)
    }

    /// For streams, whenever they look again: the tenant's settings as they are now. CALLER_UNAUTHENTICATED,
    /// TENANT_NOT_FOUND, TENANT_SUSPENDED, PROJECT_DISABLED.
    func stillAdmitted() throws -> TenantSettings {
        try project.store.read { transaction in
            try checkCaller(in: transaction)
            let settings = try project.tenants.settings(of: tenantID, in: transaction)
            try settings.checkOpen(to: caller, for: method.descriptor)
            return settings
        }
    }

    /// CALLER_UNAUTHENTICATED when the credential the stream began with is no longer one.
    func checkCaller(in transaction: borrowing ReadTransaction) throws {
        if let caller { try project.callers.checkStillValid(caller, in: transaction) }
    }

    /// The answer to the same change of a signed-in user, made with the same idempotency key; nil when it is the first.
    /// Asked for before anything else: a change may end the token it is made with.
    func repeatedChange(idToken: Text) async throws -> SignedIn? {
        try await project.repeatedChanges.answer(to: endUserRequest(idToken: idToken))
    }

    /// What an end user chooses as a password. WEAK_PASSWORD, PASSWORD_TOO_LONG, PASSWORD_DOES_NOT_MEET_REQUIREMENTS.
    func checkNewPassword(_ password: Secret) throws {
        try settings.checkNewPassword(password, limits: limits)
    }
}
