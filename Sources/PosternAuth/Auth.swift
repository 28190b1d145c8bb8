import Base
import Messages
import PosternClient
import Synchronization

/// Who uses this application: signs users in and out of one tenant, keeps the signed-in one, and tells whoever listens.
///
/// Takes the place of FirebaseAuth's `Auth`; docs/client.md of the repository says what is different. Any task on any
/// thread may use it, and there may be any number of them: several `Auth` are several signed-in users.
public final class Auth: Sendable {
    struct State {
        var currentUser: User?
        var observers: [Int: any AuthObserver] = [:]
        var lastObserverID = 0
        /// Refreshes ahead of time, while there is a user and somebody listens to ID tokens.
        var refreshing: Refreshing?
        var lastRefreshingNumber = 0
        /// Hears from the server what becomes of the user, while there is one and somebody listens.
        var watching: Watching?
    }

    private let configured: Backend
    private let tenant: Mutex<Text>
    let writer: StorageWriter
    let state: Mutex<State>

    /// Blocks while the storage is read; a user who was signed in is the current one again at once, without a call to
    /// the server. Throws for an address or a key that is none. A storage that cannot be read is no reason not to
    /// start: `storageError`.
    public init(configuration: Configuration) throws(AuthError) {
        let channel: Channel
        switch configuration.server {
        case .channel(let made): channel = made
        case .address(let address, let credentials):
            do throws(Failure) {
                let options = Self.channelOptions(timeout: configuration.timeout)
                channel = try Channel(address: address, credentials: credentials, options: options)
            } catch {
                throw AuthError(error)
            }
        }
        guard let tenantID = Text(validating: [UInt8](configuration.tenantID.utf8)),
            let deviceName = Text(validating: [UInt8](configuration.deviceName.utf8)),
            let endUserIP = Text(validating: [UInt8](configuration.endUserIP.utf8)),
            let languageCode = Text(validating: [UInt8](configuration.languageCode.utf8))
        else { throw AuthError(.internalError, reason: "INVALID_TEXT", "A setting holds a NUL character.") }
        let backend = Backend(
            accounts: AccountsClient(channel: channel), tokens: TokensClient(channel: channel),
            sessions: SessionsClient(channel: channel), tenantID: tenantID, clock: configuration.clock,
            random: configuration.random, deviceName: deviceName, endUserIP: endUserIP,
            language: Language(code: languageCode), device: KnownDevice())
        self.tenant = Mutex(tenantID)
        self.configured = backend
        self.writer = StorageWriter(configuration.storage, report: configuration.storageErrorHandler)
        let loaded = writer.load { record throws(AuthStorageError) in
            (try SavedState(record, tenantID: tenantID), SavedState.begun(in: record, tenantID: tenantID))
        }
        let saved = loaded?.0
        if let saved { backend.device.remember(saved.deviceToken) }
        let user = saved.map { User($0, backend: backend) }
        self.state = Mutex(State(currentUser: user))
        user?.kept(by: self)
        if let begun = loaded?.1 { Task { [weak self] in await self?.goOn(with: begun) } }
    }

    static func channelOptions(timeout: Duration) -> ChannelOptions {
        var options = ChannelOptions()
        // A line that died without a word would leave the user's stream open for ever.
        options.keepalive = .minutes(1)
        // A person waits: the server is tried again soon, and calls wait for it as long as they may.
        options.reconnect.firstDelay = .milliseconds(500)
        options.reconnect.delayMax = .seconds(3)
        options.waitsForConnection = true
        options.timeout = timeout
        return options
    }

    deinit {
        state.withLock { state in
            state.refreshing?.task.cancel()
            state.watching?.task.cancel()
        }
    }

    /// Whose users sign in from now on; nil: those of the default pool, or of the tenant that the key is bound to.
    ///
    /// The current user stays who it is. A text that holds a NUL is none, and changes nothing. The storage's user is of
    /// the tenant that the configuration names.
    public var tenantID: String? {
        get { tenant.withLock { $0.stringOrNil } }
        set {
            guard let id = Text(validating: [UInt8]((newValue ?? "").utf8)) else { return }
            tenant.withLock { $0 = id }
        }
    }

    /// The language of mails, BCP 47; nil: the tenant's own. A text that holds a NUL changes nothing.
    public var languageCode: String? {
        get { configured.language.code.stringOrNil }
        set {
            guard let code = Text(validating: [UInt8]((newValue ?? "").utf8)) else { return }
            configured.language.code = code
        }
    }

    var backend: Backend {
        var backend = configured
        backend.tenantID = tenant.withLock { $0 }
        return backend
    }

    /// Who is signed in, without waiting.
    public var currentUser: User? { state.withLock { $0.currentUser } }

    /// What went wrong with the storage last, until a write succeeds.
    public var storageError: AuthStorageError? { writer.error }

    /// Makes a user the current one, also one that another `Auth` of the same tenant signed in, or that was signed out
    /// here. Throws tenantIDMismatch.
    public func updateCurrentUser(_ user: User) async throws {
        guard user.backend.tenantID == backend.tenantID else {
            throw AuthError(
                .tenantIDMismatch, reason: "TENANT_ID_MISMATCH", "The user belongs to another tenant than this Auth.")
        }
        await become(user)
    }
}

extension Auth {
    /// Returns when the storage has the user, or has failed to take it.
    func become(_ user: User) async {
        let written = Promise<StorageWriter.Outcome>()
        change { state in
            guard state.currentUser !== user else {
                written.succeed(.success(()))
                return nil
            }
            state.currentUser?.left()
            user.kept(by: self)
            state.currentUser = user
            writer.enqueue(.record(user.saved.encoded()), outcome: written)
            return IDTokenEvent(user: user, change: .signedIn)
        }
        // Only ever succeeds.
        _ = try? await written.value()
    }

    /// The user has new properties or tokens; `news` is what to tell of it.
    func userChanged(_ user: User, _ news: IDTokenEvent.Change?) {
        change { state in
            guard state.currentUser === user else { return nil }
            writer.enqueue(.record(user.saved.encoded()))
            return news.map { IDTokenEvent(user: user, change: $0) }
        }
    }

    func userEnded(_ user: User, _ error: AuthError?) { forget(user, error) }

    /// Returns when the storage has what the user is now, or has failed to take it.
    func save(user: User) async {
        let written = Promise<StorageWriter.Outcome>()
        state.withLock { state in
            guard state.currentUser === user else { return written.succeed(.success(())) }
            writer.enqueue(.record(user.saved.encoded()), outcome: written)
        }
        writer.begin()
        // Only ever succeeds.
        _ = try? await written.value()
    }

    /// The one way the state changes: the change, its place in the storage's queue and what listeners are told are in
    /// one order. What calls out happens behind the lock.
    func change(_ body: (inout State) -> IDTokenEvent?) {
        let wakeUps = state.withLock { state -> [@Sendable () -> Void] in
            guard let event = body(&state) else { return [] }
            rearm(&state, after: event.change)
            return state.observers.values.compactMap { $0.offer(event, of: self) }
        }
        writer.begin()
        for wakeUp in wakeUps { wakeUp() }
    }
}

extension Auth {
    /// Starts and ends what goes on while somebody is signed in and somebody listens. After every change of user,
    /// tokens or observers.
    func rearm(_ state: inout State, after change: IDTokenEvent.Change? = nil) {
        if case .profileChanged = change { return }
        let hasNewTokens = if case .tokenRefreshed = change { true } else { false }
        rearmRefreshing(&state)
        rearmWatching(&state, hasNewTokens: hasNewTokens)
    }
}

extension User {
    convenience init(_ saved: SavedState, backend: Backend) {
        let tokens = TokenSet(
            idToken: saved.idToken, refreshToken: saved.refreshToken, lifetime: saved.lifetime,
            askedAt: saved.askedAt, now: backend.clock.moment())
        self.init(saved.account, tokens, attempt: saved.attempt, backend: backend)
    }
}
