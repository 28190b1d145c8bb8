public import Base
public import Crypto
public import Messages
public import Outbound
public import Reactor
public import Signing
public import Store
public import Tokens

/// The project: one store, its tenants, users, callers and keys. Made once by posternd or a test; everything else
/// reaches its collaborators through it.
public final class Project: Sendable {
    public struct Configuration: Sendable {
        /// The audience of ID tokens.
        public var projectID: Text
        public var issuer: Text
        public var signingAlgorithm = SigningAlgorithm.rs256
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
    public let tenants: TenantDirectory
    public let users: UserDirectory
    public let callers: CallerDirectory
    public let serviceAccounts: ServiceAccountDirectory
    public let customTokens: CustomTokens
    public let passwords: PasswordService
    public let signer: TokenSigner
    public let tokenCheck: TokenCheck
    /// Session cookies have keys and an issuer of their own: neither kind of token is ever taken for the other.
    public let cookieSigner: TokenSigner
    public let cookieCheck: TokenCheck
    public let cookieIssuer: TokenIssuer
    /// Names the store in the cursors of its revocations.
    public let revocationFeedID: Text
    public let refreshTokens: RefreshTokenCodec
    public let providers: IdentityProviders
    public let pendingCredentials: PendingCredentials
    public let emailConfigs: EmailConfigs
    public let oobDelivery: OobDelivery
    public let mailer: Mailer
    public let guesses: GuessThrottle
    public let continueURLs = ContinueURLCounts()
    public let startedAt: Timestamp
    /// Keys the hashes of requests that carry an idempotency key.
    public let idempotencyHashKey: HMACKey
    /// Authenticates page tokens.
    public let pageTokenKey: HMACKey
    /// Requests refused because their end user had used too many keys.
    public let idempotencyRefusals = Counter()
    public let anonymousExpiry: AnonymousExpiry
    public let eventUpkeep: EventUpkeep
    /// Sweeps that were put off because the clock is not proven.
    public let sweepsPutOff = Counter()

    public var store: Store { resources.store }
    public var limits: Limits { resources.limits }
    public var time: ServerClock { resources.time }
    public var clock: Clock { resources.clock }
    public var changes: ChangeHub { resources.changes }

    public init(
        configuration: Configuration, resources: Resources, masterKey: MasterKey, loops: EventLoopGroup,
        passwordPool: WorkerPool, signingPool: WorkerPool, http: HTTPClient, smtp: SMTPClient
    ) {
        self.configuration = configuration
        self.resources = resources
        let (store, signingLoop) = (resources.store, loops.loops[0])
        let refreshKey = masterKey.hmac("refresh token")
        let refreshKeyID = Array(refreshKey.tag(of: Array("id".utf8)).prefix(4))
        self.refreshTokens = RefreshTokenCodec(key: refreshKey, keyID: refreshKeyID)
        self.signer = TokenSigner(
            use: .idToken, store: store, sealing: masterKey.sealing, pool: signingPool, loop: signingLoop,
            clock: resources.clock, random: resources.random)
        self.revocationFeedID = Hex.encode(refreshKeyID)
        let verifier = IssuedTokenVerifier(
            keys: signer.published, issuer: configuration.issuer, audience: configuration.projectID,
            limits: resources.limits, random: resources.random)
        self.tokenCheck = TokenCheck(verifier: verifier, clock: resources.clock)
        self.cookieSigner = TokenSigner(
            use: .sessionCookie, store: store, sealing: masterKey.sealing, pool: signingPool, loop: signingLoop,
            clock: resources.clock, random: resources.random)
        let cookieVerifier = IssuedTokenVerifier(
            keys: cookieSigner.published, issuer: configuration.cookieIssuer, audience: configuration.projectID,
            limits: resources.limits, random: resources.random)
        self.cookieCheck = TokenCheck(verifier: cookieVerifier, clock: resources.clock, invalid: .invalidSessionCookie)
        self.cookieIssuer = TokenIssuer(
            signer: cookieSigner, refreshTokens: refreshTokens, issuer: configuration.cookieIssuer,
            audience: configuration.projectID)
        let issuer = TokenIssuer(
            signer: signer, refreshTokens: refreshTokens, issuer: configuration.issuer,
            audience: configuration.projectID)
        self.tenants = TenantDirectory(resources: resources, loops: loops)
        self.users = UserDirectory(resources: resources, issuer: issuer, loops: loops)
        let signers = ServiceAccountSigners()
        self.callers = CallerDirectory(resources: resources, signers: signers, issuer: configuration.issuer)
        self.serviceAccounts = ServiceAccountDirectory(
            resources: resources, callers: callers, pool: signingPool, projectID: configuration.projectID,
            issuer: configuration.issuer)
        let builtIn = BuiltInServiceAccount(
            resources: resources, sealing: masterKey.sealing, pool: signingPool,
            email: serviceAccounts.email(of: BuiltInServiceAccount.id))
        self.customTokens = CustomTokens(
            resources: resources, signers: signers, builtIn: builtIn, issuer: configuration.issuer)
        self.passwords = PasswordService(
            pool: passwordPool, store: store, sealing: masterKey.sealing, random: resources.random,
            profile: configuration.passwordProfile)
        self.providers = IdentityProviders(resources: resources, sealing: masterKey.sealing, http: http)
        self.pendingCredentials = PendingCredentials(sealing: masterKey.sealing, random: resources.random)
        self.emailConfigs = EmailConfigs(resources: resources, sealing: masterKey.sealing, configuration)
        self.oobDelivery = OobDelivery(
            resources: resources, sealing: masterKey.sealing, actionURL: configuration.actionURL,
            configs: emailConfigs)
        self.mailer = Mailer(
            resources: resources, configs: emailConfigs, contents: oobDelivery, smtp: smtp, http: http,
            loop: loops.loops[0])
        (self.idempotencyHashKey, self.pageTokenKey) = (masterKey.hmac("idempotency"), masterKey.hmac("page token"))
        (self.anonymousExpiry, self.eventUpkeep) = (AnonymousExpiry(resources), EventUpkeep(resources))
        self.guesses = GuessThrottle(masterKey: masterKey, resources: resources, loop: loops.loops[0])
        self.startedAt = resources.clock.now()
    }

    /// Makes what an empty store lacks and publishes what a full one has. Returns the first admin key if it made one:
    /// it cannot be read again. `keepFirstAdminKey` gets it before it is in the store.
    public func start(keepFirstAdminKey: (Secret) throws -> Void = { _ in }) async throws -> Secret? {
        try await acceptRollback()
        if store.isUpgradePutOff {
            resources.log.warning(
                "the store is full and could not be upgraded; delete something, then start again", [:])
        }
        // Also in a full store: it is what the operator started the server for.
        try await WritePurpose.$current.withValue(.removal) { try await acceptClock() }
        try await tenants.start()
        try guesses.start()
        for signer in [signer, cookieSigner] {
            // Whoever changes the keys, also on another node: they are known here before the change is acknowledged.
            changes.react(to: .signingKeys) { [weak signer, log = resources.log] in
                do { try signer?.refresh() } catch {
                    log.error("the signing keys could not be read", ["error": .text("\(error)")])
                }
            }
            try await signer.start(algorithm: configuration.signingAlgorithm, record: keyEvent(origin: .server))
        }
        try await customTokens.builtIn.start()
        return try await callers.createFirstAdmin(keep: keepFirstAdminKey)
    }

    /// A store that opened although it contradicts its witness: says so, in the log and among the events.
    private func acceptRollback() async throws {
        guard let rollback = store.rollback else { return }
        let now = clock.now()
        try await store.acceptRollback { transaction in
            try transaction.appendEvent(
                .storeRolledBack, tenantID: .empty, origin: .server, detail: Text("\(rollback)"), now: now)
        }
        resources.log.warning(
            "the store was rolled back: what was acknowledged last is gone, revocations too",
            ["reason": .text("\(rollback)")])
    }

    /// The signer of a use of tokens; by default that of ID tokens.
    public func signer(of use: TokenUse) -> TokenSigner { use == .sessionCookie ? cookieSigner : signer }

    /// Writes what happens to signing keys to the event log, in the same transaction.
    func keyEvent(origin: Origin) -> TokenSigner.KeyEvent {
        let now = resources.clock.now()
        return { transaction, kind, keyID in
            try transaction.appendEvent(kind, tenantID: .empty, origin: origin, detail: keyID, now: now)
            if kind == .signingKeyRevoked { try transaction.revokeTokens(ofSigningKey: keyID, now: now) }
        }
    }

    // MARK: Housekeeping

    /// What is done now and then: expired sessions and idempotency records, unused anonymous users, retired keys, stale
    /// readers. Nothing is deleted by its age while the clock is not proven.
    public func sweep() async {
        checkClock()
        guard time.isProven else {
            sweepsPutOff.add()
            return
        }
        await WritePurpose.$current.withValue(.removal) { await sweepNow() }
    }

    private func sweepNow() async {
        do {
            while try await store.sweep(now: clock.now(), limit: 500) == 500 {}
            for signer in [signer, cookieSigner] {
                try await signer.retireExpired(record: keyEvent(origin: .server))
            }
            try await store.write { [now = clock.now()] in try $0.noteRevocationTime(now) }
            while try await store.write({ [now = clock.now()] in try $0.forgetRevocations(now: now, limit: 500) }) {}
            while try await store.write({ [now = clock.now()] in try $0.forgetGuesses(now: now, limit: 500) }) {}
            try await anonymousExpiry.sweep(now: clock.now())
            try await eventUpkeep.sweep(now: clock.now())
            _ = try store.checkReaders()
        } catch {
            resources.log.error("the sweep failed", ["error": .text("\(error)")])
        }
    }
}
