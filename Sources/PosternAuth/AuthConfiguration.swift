import Base
public import PosternClient

extension Auth {
    /// Which tenant of which server an `Auth` is for, and what it goes by.
    public struct Configuration: Sendable {
        enum Server: Sendable {
            case channel(Channel)
            case address(String, Credentials)
        }

        let server: Server
        /// Empty: the default pool, or the tenant that the key is bound to.
        public var tenantID = ""
        /// Where the signed-in user is kept between runs. By default it is not.
        public var storage: any AuthStorage = InMemoryStorage()
        public var clock = AuthClock.system
        /// How long a call may take, waiting for a connection included. A `channel` goes by its own options instead.
        public var timeout = Duration.seconds(10)
        /// What the user's list of sessions calls this device, for example "Ada's laptop"; at most 256 bytes.
        public var deviceName = ""
        /// The end user's address, where a back end acts for a front end; the server believes it only from credentials
        /// marked `trusted_end_user_ip`.
        public var endUserIP = ""
        /// Of mails, BCP 47; empty: the tenant's own.
        public var languageCode = ""
        /// Told once about each read and write of the storage that fails, on the thread where it did; must not block
        /// for long. `Auth.storageError` has the newest one, too.
        public var storageErrorHandler: @Sendable (AuthStorageError) -> Void = { _ in }
        var random = RandomSource.operatingSystem

        /// Several `Auth` may share a channel. It is shut down by whoever made it, and should have a `keepalive` where
        /// somebody listens: a line that died without a word is not noticed otherwise. A back end's channel leaves a
        /// server that it cannot reach alone for up to two minutes: for an application, set `reconnect.delayMax` to a
        /// few seconds and `waitsForConnection`, as an `Auth` with a channel of its own does. Each `Auth` that is
        /// listened to takes a stream: a channel opens further connections for them.
        public init(channel: Channel) { server = .channel(channel) }

        /// A channel of its own. `address` is `host:port`.
        public init(address: String, credentials: Credentials) { server = .address(address, credentials) }
    }
}
