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

    /// The same for a sign-in, whose session is told apart by the device. INVALID_DISPLAY_NAME.
    func origin(deviceName: Text, address: EndUserAddress?) throws -> Origin {
        try Values.checkDisplayName(deviceName, field: "device_name", limits: limits)
        var origin = origin
        origin.device = Origin.Device(name: deviceName, address: address, keys: project.guesses.keys)
        return origin
    }
}

extension Call {
    /// The owner of a user of this call's tenant.
    func userSession(_ uid: Text) -> UserSession { project.users.session(tenantID: settings.tenantID, uid: uid) }

    /// Proves the end user: a genuine ID token of this tenant that is not revoked.
    func verifiedUser(idToken: Text) throws -> VerifiedUser {
        guard !idToken.isEmpty else { throw Failure.invalid("MISSING_ID_TOKEN", field: "id_token", "is required") }
        let token = try project.tokenCheck.verify(idToken)
        return try project.store.read { try project.tokenCheck.check(token, settings: settings, in: $0) }
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
        try await project.repeatedChange(idToken: idToken, settings: settings, origin: origin, deadline: deadline)
    }

    /// What an end user chooses as a password. WEAK_PASSWORD, PASSWORD_TOO_LONG, PASSWORD_DOES_NOT_MEET_REQUIREMENTS.
    func checkNewPassword(_ password: Secret) throws {
        try Values.checkNewPassword(password, limits: limits)
        try settings.passwordPolicy.require(password)
    }

    /// Runs a sign-in or a change; where a self-service toggle refuses it, records that and answers the refusal.
    func recordingRefusals<Result>(
        email: Email? = nil, uid: Text = .empty, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch let refused as SelfServiceRefusal {
            throw await refusal(by: refused.toggle, email: email, uid: uid)
        }
    }

    /// Records the refusal of a self-service toggle and makes the failure that answers it.
    func refusal(by toggle: Toggle, email: Email? = nil, uid: Text = .empty) async -> Failure {
        let decisionID = project.resources.random.alphanumeric(20)
        var denial = Denial()
        denial.timeMicros = now.microseconds
        denial.toggle = toggle
        denial.operation = Text(method.descriptor.fullName)
        denial.decisionID = decisionID
        denial.apiKeyID = caller?.id ?? .empty
        denial.peerAddress = peerAddress
        denial.uid = uid
        if let email { denial.identifierHash = project.identifierHash(email, settings: settings) }
        await project.tenants.tenant(settings).record(denial)
        return .adminRestricted(
            toggle: toggle, operation: method.descriptor.fullName, settings: settings, decisionID: decisionID)
    }
}
