public import Base
public import Crypto
import Messages
public import Outbound
public import Reactor
import Signing
public import Store
import Synchronization
public import Tokens

/// The project: one store, its tenants, users, callers and keys. Made once by posternd or a test.
///
/// It only puts the parts together. A part says in its initializer what it needs, and reaches nothing else.
public final class Project: Sendable {
    public struct Configuration: Sendable {
        /// The audience of ID tokens.
        public var projectID: Text
        public var issuer: Text
        public var signingAlgorithm = SigningAlgorithm.rs256
        /// How long a signing key signs before the server replaces it by itself; zero: never.
        public var signingKeyPeriod = Duration.zero
        public var passwordProfile = PasswordHashProfile.standard
        /// The page that the links in mails lead to; it calls ApplyOobCode, ResetPassword or SignInWithEmailLink.
        public var actionURL: Text

        /// The issuer of session cookies.
        public var cookieIssuer: Text { Text("\(issuer)/session-cookie") }

        public init(projectID: Text, issuer: Text) {
            self.projectID = projectID
            self.issuer = issuer
            self.actionURL = Text("\(issuer)/action")
        }
    }

    public let configuration: Configuration
    public let resources: Resources
    public let startedAt: Timestamp
    public let tokens: ProjectTokens
    public let mail: ProjectMail

    // MARK: Owners

    public let tenants: TenantDirectory
    public let users: UserDirectory
    public let callers: CallerDirectory
    public let serviceAccounts: ServiceAccountDirectory
    public let providers: IdentityProviders
    public let guesses: GuessThrottle

    // MARK: Use cases

    public let passwords: PasswordService
    public let pendingCredentials: PendingCredentials
    public let customTokens: CustomTokens
    public let verificationCodes: VerificationCodes
    public let signIns: SignInPipeline
    public let factors: ProjectFactors
    public let profileUpdates: ProfileUpdates
    public let mailedCodes: MailedCodes
    public let imports: UserImports
    public let exports: UserExports
    public let anonymousExpiry: AnonymousExpiry
    public let eventUpkeep: EventUpkeep
    public let backups: Backups
    public let digests: StoreDigests
    public let snapshots: ClusterSnapshots
    public let leases: Leases
    public let hookConfigs: HookConfigs
    public let auditSigner: AuditSigner

    // MARK: Requests

    /// Keys the hashes of requests that carry an idempotency key.
    public let idempotencyHashKey: HMACKey
    /// Authenticates page tokens.
    public let pageTokenKey: HMACKey
    /// Requests refused because their end user had used too many keys.
    public let idempotencyRefusals = Counter()
    /// Sweeps that were put off because the clock is not proven.
    public let sweepsPutOff = Counter()
    let hasToldOfEngineClock = Atomic(false)

    /// The threads for work that takes long, by its kind.
    public struct Pools: Sendable {
        let password: WorkerPool
        let signing: WorkerPool
        let blocking: WorkerPool

        public init(password: WorkerPool, signing: WorkerPool, blocking: WorkerPool) {
            (self.password, self.signing, self.blocking) = (password, signing, blocking)
        }
    }

    /// `epoch` is the store's.
    public init(
        configuration: Configuration, resources: Resources, masterKey: MasterKey, epoch: [UInt8],
        loops: EventLoopGroup, pools: Pools, http: HTTPClient, smtp: SMTPClient
    ) {
        let (sealing, loop, signers) = (masterKey.sealing, loops.loops[0], ServiceAccountSigners())
        (self.configuration, self.resources, self.leases) = (configuration, resources, Leases(resources))
        self.tokens = ProjectTokens(
            configuration, resources: resources, masterKey: masterKey, epoch: epoch, pool: pools.signing, loop: loop)
        self.mail = ProjectMail(
            configuration, resources: resources, sealing: sealing, smtp: smtp, http: http, loop: loop)
        self.tenants = TenantDirectory(resources: resources, masterKey: masterKey, loops: loops)
        self.users = UserDirectory(resources: resources, issuer: tokens.issuer, loops: loops)
        self.callers = CallerDirectory(resources: resources, signers: signers, issuer: configuration.issuer)
        self.serviceAccounts = ServiceAccountDirectory(
            resources: resources, pool: pools.signing, projectID: configuration.projectID, issuer: configuration.issuer)
        let builtIn = BuiltInServiceAccount(
            resources: resources, sealing: sealing, pool: pools.signing,
            email: serviceAccounts.email(of: BuiltInServiceAccount.id))
        self.customTokens = CustomTokens(
            resources: resources, signers: signers, builtIn: builtIn, issuer: configuration.issuer)
        self.passwords = PasswordService(
            pool: pools.password, store: resources.store, sealing: sealing, random: resources.random,
            profile: configuration.passwordProfile)
        self.providers = IdentityProviders(resources: resources, sealing: sealing, http: http)
        self.pendingCredentials = PendingCredentials(sealing: sealing, random: resources.random, epoch: epoch)
        self.verificationCodes = VerificationCodes(
            resources, masterKey, epoch: epoch, outbox: mail.sms, mailer: mail.mailer, quotas: tenants.quotas)
        self.hookConfigs = HookConfigs(resources: resources, sealing: sealing)
        self.guesses = GuessThrottle(masterKey: masterKey, resources: resources, loop: loop)
        self.signIns = SignInPipeline(
            resources: resources, users: users, tenants: tenants, tokenCheck: tokens.check, guesses: guesses,
            pendingSignIns: PendingSignIns(masterKey: masterKey), hooks: BlockingHooks(hookConfigs, http))
        self.factors = ProjectFactors(
            resources, masterKey, signIns, codes: verificationCodes, delivery: mail.delivery, mailer: mail.mailer,
            projectID: configuration.projectID)
        let recovery = EmailRecovery(resources: resources, tenants: tenants, oobDelivery: mail.delivery)
        self.mailedCodes = MailedCodes(users: users, hooks: signIns.hooks, mailer: mail.mailer, recovery: recovery)
        self.profileUpdates = ProfileUpdates(
            resources: resources, users: users, mailer: mail.mailer, recovery: recovery)
        (imports, exports) = Self.transfers(resources, masterKey, users, passwords)
        (anonymousExpiry, eventUpkeep) = (AnonymousExpiry(resources, users: users), EventUpkeep(resources))
        (backups, digests, snapshots) = Self.wholes(resources, masterKey, configuration.projectID, pools.blocking)
        (idempotencyHashKey, pageTokenKey) = (masterKey.hmac("idempotency"), masterKey.hmac("page token"))
        (startedAt, auditSigner) = (resources.clock.now(), AuditSigner(masterKey, projectID: configuration.projectID))
    }
}

extension Project {
    /// The parts that read the store as a whole.
    private static func wholes(
        _ resources: Resources, _ masterKey: MasterKey, _ projectID: Text, _ pool: WorkerPool
    ) -> (Backups, StoreDigests, ClusterSnapshots) {
        (
            Backups(resources, masterKey, projectID: projectID, pool: pool),
            StoreDigests(pool: pool) { [store = resources.store] in try store.digest(while: $0) },
            ClusterSnapshots(pool: pool)
        )
    }

    private static func transfers(
        _ resources: Resources, _ masterKey: MasterKey, _ users: UserDirectory, _ passwords: PasswordService
    ) -> (UserImports, UserExports) {
        let secrets = FactorSecrets(masterKey: masterKey, random: resources.random)
        let limits = resources.limits.administration
        return (
            UserImports(
                resources: resources, users: users, passwords: passwords, secrets: secrets,
                places: ImportPlaces(countMax: limits.importBatchesAtOnceMax),
                specPlaces: HashSpecPlaces(countMax: limits.importHashSpecsAtOnceMax)),
            UserExports(resources: resources, passwords: passwords, secrets: secrets)
        )
    }
}

// MARK: - Names of parts of parts

extension Project {
    public var store: Store { resources.store }
    public var limits: Limits { resources.limits }
    public var time: ServerClock { resources.time }
    public var clock: Clock { resources.clock }
    public var changes: ChangeHub { resources.changes }
    public var signingKeys: SigningKeys { tokens.signingKeys }
    public var tokenCheck: TokenCheck { tokens.check }
    public var refreshTokens: RefreshTokenCodec { tokens.refreshTokens }
    public var repeatedChanges: RepeatedChanges { signIns.repeatedChanges }
    public var refusals: SelfServiceRefusals { signIns.refusals }
    public var hookFailures: HookFailures { signIns.hooks.failures }
    public var secondFactorSignIns: SecondFactorSignIns { factors.signIns }
    public var secondFactorEnrollments: SecondFactorEnrollments { factors.enrollments }
    public var mailer: Mailer { mail.mailer }
    public var outbox: Outbox { mail.outbox }
    public var oobDelivery: OobDelivery { mail.delivery }
    public var emailConfigs: EmailConfigs { mail.configs }
    public var testMail: TestMail {
        TestMail(
            resources: resources, configs: mail.configs, delivery: mail.mailer.delivery, tenants: tenants,
            seal: mail.seal)
    }
    public var smsConfigs: SMSConfigs { mail.smsConfigs }
    public var continueURLs: ContinueURLs { mail.continueURLs }
}
