import Base
import Crypto
import Identity
import Messages
import Rules
import Signing
import Store
import Tokens

/// The data of an admitted call for a handler that only reads.
///
/// Such a handler reads in the transaction that it is given: everything that it finds is of one moment, and nothing is
/// read twice. So a `ReadCall` has no store and no `Project`, with which another transaction could begin. The other
/// things that a handler needs are listed here one by one.
struct ReadCall: ~Copyable {
    // Unmanaged and unowned: the router, the connection and, for the caller, the exchange hold them for longer.
    private let service: Unmanaged<ServiceContext>
    private unowned(unsafe) let method: MethodDescriptor
    /// Nil only for methods that need no credential.
    unowned(unsafe) let caller: Caller?
    private unowned(unsafe) let context: ConnectionContext
    /// See `Admission.namedTenantID`.
    private let namedTenantID: Text?

    init(
        _ service: ServiceContext, _ method: MethodDescriptor, caller: Caller?, context: ConnectionContext,
        namedTenantID: Text?
    ) {
        self.service = .passUnretained(service)
        self.method = method
        self.caller = caller
        self.context = context
        self.namedTenantID = namedTenantID
    }

    /// The tenant's settings as the call began; the default pool's for methods that are about no tenant.
    var settings: TenantSettings { context.settings }
    /// The tenant the request means.
    var tenantID: Text { namedTenantID ?? context.lastTenantID }
    var limits: Limits { project.limits }
    var now: Timestamp { withProject { $0.clock.now() } }

    var configuration: Project.Configuration { project.configuration }
    var startedAt: Timestamp { project.startedAt }
    var version: Text { shared.version }
    var isServing: Bool { shared.health.isServing }
    var providers: IdentityProviders { project.providers }
    var oobDelivery: OobDelivery { project.oobDelivery }
    var denialIdentifiers: DenialIdentifiers { project.tenants.denialIdentifiers }
    var auditSigner: AuditSigner { project.auditSigner }
    /// Nil for a server that is in no cluster.
    var journalStatus: JournalStatus? { project.store.journalStatus }
    var signers: [TokenSigner] { project.signingKeys.all }

    private var shared: ServiceContext { service.takeUnretainedValue() }
    private var project: Project { shared.project }

    private var lent: ServiceContext.Lent { service._withUnsafeGuaranteedRef { $0.lent } }

    /// Lends the project, which `project` hands out with a count of references.
    private borrowing func withProject<Result>(_ body: (Project) throws -> Result) rethrows -> Result {
        try service._withUnsafeGuaranteedRef { try body($0.project) }
    }

    /// The settings of another tenant than the call's. TENANT_NOT_FOUND.
    borrowing func settings(
        of tenantID: Text, in transaction: borrowing ReadTransaction
    ) throws -> TenantSettings {
        try project.tenants.settings(of: tenantID, in: transaction)
    }

    /// The owner of the keys of these tokens.
    borrowing func signer(of use: TokenUse) -> TokenSigner { project.signingKeys.signer(of: use) }

    /// "" is the whole server.
    borrowing func isKnown(service name: Text) -> Bool { shared.isKnown(name) }

    /// The counters that Project.Stats answers. They are of now, not of the transaction.
    borrowing func statistics() throws -> [StatsValue] { try shared.statistics() }

    /// The page a list method is asked for. INVALID_PAGE_SIZE, INVALID_PAGE_TOKEN.
    borrowing func page(_ request: some PagedRequest) throws(Failure) -> Page {
        try Page(
            of: request, method: method.fullName, tenantID: tenantID, key: project.pageTokenKey,
            limits: limits)
    }
}

// MARK: - Tokens

extension ReadCall {
    /// An ID token that is genuine and alive, of this call's tenant or, with `anyTenant`, of any in the caller's scope.
    borrowing func verified(
        idToken: Text, anyTenant: Bool, in transaction: borrowing ReadTransaction
    ) throws -> VerifiedToken {
        guard !idToken.isEmpty else { throw Failure.missingIDToken }
        return try verified(idToken, by: lent.idTokenCheck, anyTenant: anyTenant, in: transaction)
    }

    /// A session cookie that is genuine and alive, of this call's tenant or, with `anyTenant`, of any in the caller's
    /// scope.
    borrowing func verified(
        sessionCookie: Text, anyTenant: Bool, in transaction: borrowing ReadTransaction
    ) throws -> VerifiedToken {
        guard !sessionCookie.isEmpty else {
            throw Failure.invalid(.missingSessionCookie, field: "session_cookie", "is required")
        }
        return try verified(sessionCookie, by: lent.cookieCheck, anyTenant: anyTenant, in: transaction)
    }

    /// Proves the end user: a genuine ID token of this tenant that is not revoked.
    borrowing func verifiedUser(
        idToken: Text, in transaction: borrowing ReadTransaction
    ) throws -> VerifiedUser {
        try project.tokenCheck.verifiedUser(idToken, settings: settings, in: transaction)
    }

    /// Proves the end user as `verifiedUser` does, but the user may still have to enroll a second factor first.
    borrowing func enrollingUser(
        idToken: Text, in transaction: borrowing ReadTransaction
    ) throws -> EnrollingUser {
        try project.secondFactorEnrollments.user(idToken, settings: settings, in: transaction)
    }

    private borrowing func verified(
        _ text: Text, by check: Unmanaged<TokenCheck>, anyTenant: Bool, in transaction: borrowing ReadTransaction
    ) throws -> VerifiedToken {
        try check._withUnsafeGuaranteedRef { check in
            let now = now
            let token = try check.verify(text, at: now)
            if anyTenant {
                let settings = try settings(ofTokenIn: token.tenantID, in: transaction)
                try check.checkAlive(token, settings: settings, at: now, in: transaction)
            } else {
                try context.withSettings {
                    try check.checkAlive(token, settings: $0, at: now, in: transaction)
                }
            }
            return token
        }
    }

    /// The settings of a tenant that only the token names: TENANT_ID_MISMATCH outside of the caller's scope, and the
    /// refusals of the gate.
    private borrowing func settings(
        ofTokenIn tenantID: Text, in transaction: borrowing ReadTransaction
    ) throws -> TenantSettings {
        // No INSUFFICIENT_PERMISSION: the end user chose the token, and the caller asked for nothing beyond its scope.
        if let own = caller?.tenantID, own != tenantID {
            throw Failure.tenantMismatch(tokenOf: tenantID, request: own)
        }
        let settings = try settings(of: tenantID, in: transaction)
        try settings.checkOpen(to: caller, for: method)
        return settings
    }
}
