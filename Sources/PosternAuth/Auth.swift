import Base
import Messages
import PosternClient
import Synchronization

/// Signs users in to one tenant, keeps the signed-in user, and tells listeners about changes.
///
/// `Auth` takes the place of FirebaseAuth's class of that name; docs/client.md of the repository lists the differences.
/// An application may have several: each has a current user of its own. Every method may be called from any task and
/// any thread.
///
/// ```swift
/// let auth = try Auth(configuration: Auth.Configuration(address: "127.0.0.1:7400", credentials: .apiKey(apiKey)))
/// try await auth.signIn(withEmail: email, password: password)
/// print(auth.currentUser?.uid ?? "nobody is signed in")
/// try await auth.signOut()
/// ```
public final class Auth: Sendable {
    /// The choices that hold for the whole life of an `Auth`.
    public typealias Configuration = AuthConfiguration

    /// The task that refreshes tokens before they expire.
    struct Refreshing {
        let number: Int
        let task: Task<Void, Never>
        /// The time, by the monotonic clock, by which the task looks again, so that later tokens need no other task.
        var wakesAt: Instant
    }

    /// A watch and its task, which ends when it is cancelled.
    struct Watching {
        let watch: UserWatch
        let task: Task<Void, Never>
    }

    struct State {
        var currentUser: User?
        /// A sign-up that is under way, or whose answer was lost.
        var signUpAttempt: SignUpAttempt?
        var observers: [Int: any AuthObserver] = [:]
        var lastObserverID = 0
        /// Refreshes tokens ahead of time. Nil unless a user is signed in and somebody listens to ID tokens.
        var refreshing: Refreshing?
        var lastRefreshingNumber = 0
        /// Follows the user's session at the server. Nil unless a user is signed in and somebody listens.
        var watching: Watching?
    }

    let configured: Backend
    private let tenant: Mutex<Text>
    let writer: StorageWriter
    /// The order of sign-ups: one after the other.
    let signUps = Turns()
    let state: Mutex<State>

    /// Reads the storage, blocking the thread meanwhile. A user whom the storage holds is the current user at once,
    /// without a call to the server.
    ///
    /// Throws for an address or a key that is malformed. A storage that cannot be read does not stop the application
    /// from starting: see `storageError`.
    public init(configuration: Configuration) throws(AuthError) {
        let channel: Channel
        switch configuration.server {
        case .channel(let made): channel = made
        case .address(let address, let credentials):
            do throws(Failure) {
                var options = Self.channelOptions(timeout: configuration.timeout)
                options.tls = configuration.tls
                channel = try Channel(address: address, credentials: credentials, options: options)
            } catch {
                throw AuthError(error)
            }
        }
        guard let tenantID = Text(validating: [UInt8](configuration.tenantID.utf8)),
            let deviceName = Text(validating: [UInt8](configuration.deviceName.utf8)),
            let endUserIP = Text(validating: [UInt8](configuration.endUserIP.utf8)),
            let languageCode = Text(validating: [UInt8](configuration.languageCode.utf8))
        else { throw AuthError(.invalidText, "A setting holds a NUL character.") }
        let backend = Backend(
            accounts: AccountsClient(channel: channel), tokens: TokensClient(channel: channel),
            sessions: SessionsClient(channel: channel), tenantID: tenantID, clock: configuration.clock,
            random: configuration.random, deviceName: deviceName, endUserIP: endUserIP,
            language: Language(code: languageCode), device: KnownDevice(), server: configuration.server)
        self.tenant = Mutex(tenantID)
        self.configured = backend
        self.writer = StorageWriter(configuration.storage, report: configuration.storageErrorHandler)
        let loaded = writer.load { record throws(AuthStorageError) in
            let saved = try SavedState(record, tenantID: tenantID)
            return (saved: saved, signUpID: SavedState.signUpAttempt(in: record, tenantID: tenantID))
        }
        let saved = loaded?.saved
        if let saved { backend.device.remember(saved.deviceToken) }
        let user = saved.map { User($0, backend: backend) }
        let attempt = loaded?.signUpID.map { id in
            SignUpAttempt(id: id, tenantID: tenantID, request: nil, since: backend.clock.monotonic(), isOpen: true)
        }
        self.state = Mutex(State(currentUser: user, signUpAttempt: attempt))
        user?.addKeeper(self)
        if let attempt { Task { [weak self] in await self?.finishSignUp(attempt) } }
    }

    static func channelOptions(timeout: Duration) -> ChannelOptions {
        var options = ChannelOptions()
        // Without PINGs, a dead connection would leave the user's stream open for ever. Calls send them sooner.
        options.keepalive = .minutes(1)
        // A person waits: the channel soon tries the server again, and calls wait for it until their timeout.
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

    /// The tenant of future sign-ins. Nil: the tenant that the API key is bound to, or the default pool.
    ///
    /// Setting it does not change the current user, who stays signed in to its own tenant and can be used as before.
    /// The storage keeps users of the configuration's tenant only: while a user of another tenant is the current user,
    /// it is empty, and after a restart nobody is signed in. A string that holds a NUL is ignored.
    public var tenantID: String? {
        get { tenant.withLock { $0.stringOrNil } }
        set {
            guard let id = Text(validating: [UInt8]((newValue ?? "").utf8)) else { return }
            tenant.withLock { $0 = id }
        }
    }

    /// The language of mails, as a BCP 47 tag. Nil: the tenant's own language. A string that holds a NUL is ignored.
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

    /// The signed-in user. Nil: nobody is signed in. Never waits.
    public var currentUser: User? { state.withLock { $0.currentUser } }

    /// The newest error of the storage. Nil again when a write succeeds.
    public var storageError: AuthStorageError? { writer.error }

    /// Makes `user` the current user: for example a user of another `Auth` of the same tenant, or a user who was signed
    /// out here.
    ///
    /// One storage holds a user. A user who is also the current user of another `Auth` moves to this one's storage, and
    /// the other `Auth` does not find the user again after a restart. When this `Auth` signs the user out, the other's
    /// storage holds the user again.
    ///
    /// Throws tenantIDMismatch for a user of another tenant, and for one of another server or API key: the two `Auth`
    /// must have the same `Channel`, or the same address and key.
    public func updateCurrentUser(_ user: User) async throws {
        guard user.backend.tenantID == backend.tenantID else {
            throw AuthError(
                .tenantIDMismatch, "The user belongs to another tenant than this Auth.")
        }
        guard let server = user.backend.server, let own = configured.server, server.isSame(as: own) else {
            throw AuthError(
                .tenantIDMismatch, "The user belongs to another server or API key than this Auth.")
        }
        await become(user)
    }
}

extension Auth {
    /// Returns when the storage has the user, or has failed to take it, and no other `Auth` has it in its storage.
    /// `signUpID`: the attempt that brought the user. If another sign-up lost its answer, its session is ended.
    func become(_ user: User, endingSignUp signUpID: [UInt8]? = nil) async {
        let written = Promise<StorageWriter.Outcome>()
        var former: User?
        var lost: SignUpAttempt?
        change { state in
            if let signUpID, state.signUpAttempt?.id == signUpID { state.signUpAttempt = nil }
            lost = state.signUpAttempt
            guard state.currentUser !== user else {
                written.succeed(.success(()))
                return nil
            }
            former = state.currentUser
            former?.removeKeeper(self)
            user.addKeeper(self)
            state.currentUser = user
            writer.enqueue(storageContent(of: state), outcome: written)
            return IDTokenEvent(user: user, change: .signedIn)
        }
        if let former { handOver(former) }
        former = nil
        // Only ever succeeds.
        _ = try? await written.value()
        for auth in user.observers where auth !== self && auth.currentUser === user { await auth.saveState() }
        if let lost, lost.isOpen { Task { [weak self] in await self?.finishSignUp(lost) } }
    }

    /// Lets another `Auth` keep a user who is not the current user here any more.
    func handOver(_ user: User) {
        for auth in user.observers where auth !== self { auth.userChanged(user, nil) }
    }

    /// Tells observers that the user has new properties or tokens. `news` is the event.
    func userChanged(_ user: User, _ news: IDTokenEvent.Change?) {
        change { state in
            guard state.currentUser === user else { return nil }
            if isKeeping(user) { writer.enqueue(storageContent(of: state)) }
            return news.map { IDTokenEvent(user: user, change: $0) }
        }
    }

    func userEnded(_ user: User, _ error: AuthError?) { forget(user, error) }

    /// Returns when the storage has the user's present state, or has failed to take it.
    func save(user: User) async {
        let written = Promise<StorageWriter.Outcome>()
        state.withLock { state in
            guard state.currentUser === user, isKeeping(user) else { return written.succeed(.success(())) }
            writer.enqueue(storageContent(of: state), outcome: written)
        }
        writer.begin()
        // Only ever succeeds.
        _ = try? await written.value()
    }

    /// Returns when the storage has the present user and sign-up, or has failed to take them. A record that cannot be
    /// used stays until somebody signs in.
    func saveState() async {
        let written = Promise<StorageWriter.Outcome>()
        state.withLock { state in
            guard !writer.hasUnusableRecord else { return written.succeed(.success(())) }
            writer.enqueue(storageContent(of: state), outcome: written)
        }
        writer.begin()
        // Only ever succeeds.
        _ = try? await written.value()
    }

    /// The content of the storage in this state: what belongs to the configuration's tenant, and is in the storage of
    /// no other `Auth`.
    func storageContent(of state: State) -> StorageWriter.Content {
        let attempt = state.signUpAttempt.flatMap { $0.tenantID == configured.tenantID ? $0.id : nil }
        if let user = state.currentUser, isKeeping(user) {
            var saved = user.saved
            saved.signUpAttempt = attempt
            return .record(saved.encoded())
        }
        guard let attempt else { return .nothing }
        return .record(SavedState.encoded(signUpAttempt: attempt, tenantID: configured.tenantID))
    }

    /// Whether this `Auth` writes the user, its current user, to its storage.
    private func isKeeping(_ user: User) -> Bool {
        user.backend.tenantID == configured.tenantID && user.isWritten(by: writer)
    }

    /// Changes the state: the only way to do so. The change, its place in the storage's queue and the events of
    /// listeners have one order. Calls to other code happen after the lock is released.
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
    /// Starts or ends refreshing and watching. Called after every change of the user, the tokens or the observers.
    func rearm(_ state: inout State, after change: IDTokenEvent.Change? = nil) {
        if case .profileChanged = change { return }
        let hasNewTokens = if case .tokenRefreshed = change { true } else { false }
        rearmRefreshing(&state)
        rearmWatching(&state, hasNewTokens: hasNewTokens)
    }
}
