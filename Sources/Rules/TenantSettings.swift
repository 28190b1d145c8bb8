public import Base
public import Messages

/// A tenant's settings as requests read them: immutable, made of the tenant's row.
public final class TenantSettings: Sendable {
    public let tenantID: Text
    public let isAuthDisabled: Bool
    /// Whether a project-admin suspended the tenant.
    public let isSuspended: Bool
    public let quotas: TenantQuotas
    /// Zero: anonymous users never expire.
    public let anonymousUserExpiry: Duration
    public let allowsPasswordSignup: Bool
    public let allowsAnonymousUsers: Bool
    public let allowsEmailLinkSignin: Bool
    public let allowsPhoneSignin: Bool
    public let smsRegions: SMSRegions
    /// Number → the code that is always good for it.
    private let testCodes: [Text: Text]
    public let secondFactorState: SecondFactorState
    /// The kinds that users may enroll; empty: all.
    public let allowedSecondFactors: [SecondFactorKind]
    /// The form of the addresses that may enter an account.
    public let emailForm: Email.Form
    public let passwordPolicy: PasswordPolicy
    public let permissions: ClientPermissions
    public let hasEmailPrivacy: Bool
    public let refreshMode: RefreshMode
    public let sessionIdle: Duration
    public let sessionAbsolute: Duration
    public let recentLogin: Duration
    public let guidance: Failure.Guidance?
    public let isSynthetic: Bool
    /// Whether imports may bring hashes as costly as their formats allow.
    public let allowsCostlyHashes: Bool
    /// Nil: any https URL, for a tenant made before there were lists.
    public let continueDomains: ContinueDomains?
    public let revision: Int64
    /// The tenant as Tenants.Get returns it.
    public let tenant: Messages.Tenant
    /// Keys the hashes of this tenant's identifiers.
    public let secret: Secret

    public init(_ record: StoredTenant) {
        let tenant = record.tenant ?? Messages.Tenant()
        self.tenant = tenant
        self.tenantID = tenant.tenantID
        self.isAuthDisabled = tenant.disableAuth
        self.isSuspended = tenant.suspended
        self.quotas = tenant.quotas ?? TenantQuotas()
        self.anonymousUserExpiry = .seconds(tenant.anonymousUserExpirySeconds)
        self.allowsPasswordSignup = tenant.allowPasswordSignup
        self.allowsAnonymousUsers = tenant.enableAnonymousUser
        self.allowsEmailLinkSignin = tenant.enableEmailLinkSignin
        self.allowsPhoneSignin = tenant.enablePhoneSignin
        self.smsRegions = SMSRegions(tenant)
        self.testCodes = Dictionary(
            tenant.testPhoneNumbers.map { ($0.phoneNumber, $0.code) }, uniquingKeysWith: { first, _ in first })
        self.secondFactorState = tenant.secondFactorState
        self.allowedSecondFactors = tenant.allowedSecondFactors
        self.emailForm = tenant.allowInternationalEmail ? .international : .ascii
        self.passwordPolicy = tenant.passwordPolicy ?? PasswordPolicy()
        self.permissions = tenant.client?.permissions ?? ClientPermissions()
        self.hasEmailPrivacy = tenant.enableEmailPrivacy
        self.refreshMode = tenant.refreshMode
        self.sessionIdle = .seconds(tenant.sessionIdleSeconds)
        self.sessionAbsolute = .seconds(tenant.sessionAbsoluteSeconds)
        self.recentLogin = .seconds(tenant.recentLoginSeconds)
        self.guidance = tenant.guidance.map {
            Failure.Guidance(locale: $0.locale.string, message: $0.message.string, url: $0.helpURL.string)
        }
        self.isSynthetic = tenant.synthetic
        self.allowsCostlyHashes = tenant.allowCostlyHashes
        self.continueDomains = tenant.continueURLRule == .listed ? ContinueDomains(tenant) : nil
        self.revision = tenant.revision
        self.secret = Secret(record.secret)
    }

    /// TENANT_SUSPENDED, PROJECT_DISABLED where the tenant is closed to its end users.
    public func requireOpenToEndUsers() throws(Failure) {
        if isSuspended { throw .tenantSuspended(self) }
        if isAuthDisabled { throw .projectDisabled }
    }

    /// INVALID_EMAIL for an address that may not enter an account. An account that has such an address is still found
    /// by it.
    public func checkMayEnter(_ email: Email, field: String = "email") throws(Failure) {
        guard emailForm.admits(email) else {
            let message =
                email.isInternational && emailForm == .ascii
                ? "must be in ASCII: this tenant takes no international mail"
                : "needs a domain without empty, too long or encoded labels, and without hyphens at their ends"
            throw .invalid(.invalidEmail, field: field, message)
        }
    }

    /// The fixed code of a test number; nil for a number that messages are sent to.
    public func testCode(of number: PhoneNumber) -> Text? { testCodes[number.text] }

    /// SMS_REGION_NOT_ALLOWED.
    public func checkMayBeSent(_ number: PhoneNumber) throws(Failure) {
        if let region = number.region, smsRegions.allows(region) { return }
        throw Failure(
            .smsRegionNotAllowed, "This tenant sends no codes to numbers of this region; its admins set the regions.",
            metadata: [Failure.Entry("region", number.region?.text.string ?? "")])
    }

    /// The settings of a new tenant: password sign-up and email-enumeration protection on, everything else off.
    public static func defaults(tenantID: Text, now: Timestamp) -> Messages.Tenant {
        var tenant = Messages.Tenant()
        tenant.tenantID = tenantID
        tenant.allowPasswordSignup = true
        tenant.enableEmailPrivacy = true
        tenant.client = ClientConfig(permissions: ClientPermissions())
        tenant.refreshMode = .rotate
        tenant.sessionIdleSeconds = 30 * 86_400
        tenant.sessionAbsoluteSeconds = 180 * 86_400
        tenant.recentLoginSeconds = 300
        tenant.continueURLRule = .listed
        tenant.secondFactorState = .disabled
        tenant.createdAtMicros = now.microseconds
        tenant.updatedAtMicros = now.microseconds
        tenant.revision = 1
        return tenant
    }
}
