import Base
public import PosternClient

/// The server and the tenant of an `Auth`, and the choices that hold for its whole life: `Auth.Configuration`.
///
/// ```swift
/// var configuration = AuthConfiguration(channel: channel)
/// configuration.tenantID = "acme"
/// let auth = try Auth(configuration: configuration)
/// print(auth.currentUser?.uid ?? "nobody is signed in")
/// ```
public struct AuthConfiguration: Sendable {
    enum Server: Sendable {
        case channel(Channel)
        case address(String, Credentials)

        /// Whether both are the same server with the same credential: the same channel, or the same address and key.
        func isSame(as other: Server) -> Bool {
            switch (self, other) {
            case (.channel(let channel), .channel(let otherChannel)): channel === otherChannel
            case (.address(let address, .none), .address(let otherAddress, .none)):
                ServerAddress.isSame(address, otherAddress)
            case (.address(let address, .apiKey(let key)), .address(let otherAddress, .apiKey(let otherKey))):
                ServerAddress.isSame(address, otherAddress) && key == otherKey
            default: false
            }
        }
    }

    let server: Server
    /// The tenant of the users. Empty: the tenant that the API key is bound to, or the default pool.
    public var tenantID = ""
    /// The place where the signed-in user is kept between runs. By default the user is forgotten when the
    /// application ends.
    public var storage: any AuthStorage = InMemoryStorage()
    /// The clocks that the `Auth` uses. Tests set their own.
    public var clock = AuthClock.system
    /// The longest time that a call may take, waiting for a connection included. With `init(channel:)` the
    /// channel's options hold instead.
    public var timeout = Duration.seconds(10)
    /// TLS, and how the server is verified. Nil: plain text, which is for servers on the same machine. With
    /// `init(channel:)` the channel's options hold instead.
    public var tls: TLSOptions?
    /// The name of this device in the user's list of sessions, for example "Ada's laptop". At most 256 bytes.
    public var deviceName = ""
    /// The end user's IP address, for a back end that acts for a front end. The server believes it only from
    /// credentials that are marked `trusted_end_user_ip`.
    public var endUserIP = ""
    /// The language of mails, as a BCP 47 tag. Empty: the tenant's own language.
    public var languageCode = ""
    /// Called once for each read or write of the storage that fails. `Auth.storageError` keeps the newest error.
    ///
    /// The thread that read or wrote calls it, so it must not block for long.
    public var storageErrorHandler: @Sendable (AuthStorageError) -> Void = { _ in }
    var random = RandomSource.operatingSystem

    /// Uses a channel that the application made. Several `Auth` may share one; the application shuts it down.
    ///
    /// The defaults of `ChannelOptions` suit a back end: they leave an unreachable server alone for up to two
    /// minutes. For an application set `reconnect.delayMax` to a few seconds and `waitsForConnection` to true, as
    /// an `Auth` with its own channel does. Keep `keepalive` set where listeners are: without it a dead connection
    /// goes unnoticed. Each `Auth` with listeners holds one stream; the channel opens further connections for many
    /// of them.
    public init(channel: Channel) { server = .channel(channel) }

    /// Uses a channel of its own. `address` is `host:port`, or several of these with commas between them.
    public init(address: String, credentials: Credentials) { server = .address(address, credentials) }
}
