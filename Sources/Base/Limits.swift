/// Every bound of the server in one place: each has a test at the limit and one past it.
///
/// Sizes are bytes. A test may shrink any of them; an operator sets the ones docs/operations.md lists.
public struct Limits: Sendable {
    // Wire
    /// A frame above this ends the connection: the length field's first byte is always zero.
    public var framePayloadHardMax = 16 * 1024 * 1024 - 1
    public var framePayloadMaxUnauthenticated = 64 * 1024
    public var framePayloadMax = 4 * 1024 * 1024
    public var streamsMaxUnauthenticated = 16
    public var streamsMax = 256
    /// Answers that the client has not taken. Above it, the server stops reading from the connection.
    public var unreadOutputMax = 256 * 1024
    /// Requests that are not answered, and messages of streams that no handler has taken, of a connection with a
    /// credential. Above it, the server stops reading from the connection.
    public var waitingBytesMax = 1024 * 1024
    /// What a connection without a credential may have waiting: answers it does not read, requests that are not
    /// answered, and messages of its streams that no handler has taken. Above it, the server stops reading from the
    /// connection.
    public var waitingBytesMaxUnauthenticated = 64 * 1024
    public var streamWindow = 256 * 1024
    /// Cancels of unfinished work per connection and second, before the connection is closed.
    public var cancelsPerSecondMax = 200
    /// Pings per connection and second, before the connection is closed.
    public var pingsPerSecondMax = 100

    // gRPC over HTTP/2
    /// The names and values of one request's header fields, with 32 bytes for each field (RFC 9113 §6.5.2).
    public var headerListMax = 16 * 1024
    /// The frames that carry the headers of one request, and the bytes in them.
    public var headerFramesMax = 8
    public var headerBlockMax = 32 * 1024
    /// What a client without a credential may send on one stream before it is taken; `streamWindow` with one.
    public var streamWindowUnauthenticated = 16 * 1024
    /// SETTINGS, PRIORITY, RST_STREAM, empty DATA and unknown frames per connection and second, before it is closed.
    public var idleFramesPerSecondMax = 1_000

    // Memory of connections: docs/decisions/0038-memory-of-connections.md
    /// What all connections hold together: what came in and is not answered, and answers that are not taken.
    public var connectionMemoryMax = 256 << 20
    /// When three quarters of `connectionMemoryMax` are taken, a connection may hold this much. When seven eighths are
    /// taken, a quarter of it.
    public var connectionMemoryShare = 64 * 1024
    /// A connection with a credential whose peer took something, or whose request came whole, within this time is never
    /// closed for the memory it holds.
    public var unreadPatience = Duration.seconds(1)

    /// Of messages and of the envelopes around them.
    public var messages = MessageLimits()

    // Connections
    /// When all places are taken, the oldest connection without a credential gives up its place for a new one.
    public var connectionsMax = 10_000
    /// Connections from one address (IPv6: from one /64), with and without a credential.
    public var connectionsPerAddressMax = 10_000
    /// Connections from one address that have shown no credential yet. One more closes the oldest of them.
    public var connectionsUnauthenticatedPerAddressMax = 256
    /// How long a connection may live without a credential, whatever is in flight on it.
    public var connectionUnauthenticatedMax = Duration.seconds(60)
    /// Connections that showed the same credential first.
    public var connectionsPerCallerMax = 8_000
    /// Streams that were begun with the same credential, on all connections together.
    public var streamsPerCallerMax = 3_000
    /// Connections of the HTTP port, and those of them from one address. One more closes the oldest.
    public var httpConnectionsMax = 64
    public var httpConnectionsPerAddressMax = 16
    /// From accepting an HTTP connection to the end of its request.
    public var httpRequestTimeout = Duration.seconds(10)
    public var firstRequestTimeout = Duration.seconds(10)
    public var frameTimeout = Duration.seconds(10)
    public var writeTimeout = Duration.seconds(10)
    public var idleTimeout = Duration.seconds(3600)
    /// A backup whose next bytes nobody takes for so long is given up: it holds a snapshot of the store.
    public var backupStallMax = Duration.seconds(30)
    /// One that is taken more slowly than this, on the average since it began, is given up after `backupSlowMax`.
    public var backupBytesPerSecondMin = 64 * 1024
    public var backupSlowMax = Duration.seconds(600)
    public var drainTimeout = Duration.seconds(10)
    /// A peer with a credential that has been silent for so long gets a PING. One that is not heard of for the second
    /// time after it is gone.
    public var keepaliveInterval = Duration.seconds(300)
    public var keepaliveTimeout = Duration.seconds(20)
    /// What one server listens on: TCP addresses and Unix domain sockets together.
    public var listenersMax = 16
    /// The header of a proxy (PROXY protocol, version 2), with everything that it tells, and the networks of proxies.
    public var proxyHeaderMax = 536
    public var proxyNetworksMax = 64

    // TLS: docs/decisions/0063-tls-on-the-port.md
    /// From accepting a connection to the end of its handshake.
    public var tlsHandshakeTimeout = Duration.seconds(5)
    /// Handshakes in flight, of all addresses and of one (IPv6: of one /64). One more closes the oldest.
    public var tlsHandshakesMax = 512
    public var tlsHandshakesPerAddressMax = 256
    /// The handshakes that a loop goes on with before it looks at its other connections again.
    public var tlsHandshakesPerTurnMax = 8
    /// The bytes of the certificates that a client shows.
    public var tlsCertificateListMax = 64 * 1024
    /// KeyUpdates of a client; one more for each MiB that it sends.
    public var tlsKeyUpdatesMax = 16
    /// A file of certificates, a key or a revocation list.
    public var tlsFileMax = 1024 * 1024

    // Channels: these bound a client, not the server
    /// The servers that one channel may be given.
    public var channelServersMax = 16
    /// The addresses of one name that a channel uses; it leaves out the others.
    public var channelAddressesPerNameMax = 16
    /// A name whose addresses failed is looked up again, but not sooner than this after the last time.
    public var channelLookupIntervalMin = Duration.seconds(5)

    // Work
    public var requestTimeoutMax = Duration.seconds(30)
    public var passwordQueueMax = 64
    public var passwordQueuePerTenantMax = 32
    /// What the hashes may hold that are computed at the same time. Never less than our own need on all workers.
    public var passwordMemoryMax = 320 << 20
    /// How long a password worker without work keeps the memory of a hash.
    public var passwordArenaKept = Duration.seconds(10)
    /// The memory and the time that one check of an imported hash may take, unless its tenant has
    /// `allow_costly_hashes`.
    public var importedHashMemoryMax = 128 << 20
    public var importedHashTimeMax = Duration.milliseconds(250)
    public var blockingQueueMax = 256
    public var signingQueueMax = 4_096
    /// The threads that call identity providers, and how many calls one tenant may have running or waiting there.
    public var outboundWorkers = 16
    public var outboundRequestsPerTenantMax = 8
    /// The processor time, per ten seconds, for documents and keys that the identity providers of one tenant publish.
    public var providerKeyTimePerTenantMax = Duration.milliseconds(100)
    public var writeBatchMax = 512
    public var writeQueueMax = 8_192
    /// The space that a full store keeps free for deleting and revoking: a sixteenth of its size, within these two
    /// bounds.
    public var storeReserveMin = 2 << 20
    public var storeReserveMax = 64 << 20
    /// The pause between attempts to write to a full disk.
    public var fullDiskRetryInterval = Duration.milliseconds(500)
    /// How long reads continue after the data file was removed. Then the server ends.
    public var removedStoreGrace = Duration.seconds(60)

    // Values
    public var emailMax = 254
    public var passwordMin = 6
    public var passwordMax = 4_096
    public var uidMax = 128
    public var displayNameMax = 256
    public var photoURLMax = 2_048
    public var customClaimsMax = 1_000
    public var tokenMax = 8 * 1024
    public var pageSizeMax = 1_000
    public var pageSizeDefault = 100
    /// A page of a list ends at this many bytes of items, and at this many rows and bytes that were read for the page,
    /// whether they are in it or not.
    public var pageBytesMax = 256 * 1024
    public var pageRowsReadMax = 1_000
    public var pageBytesReadMax = 1024 * 1024
    /// Pages of lists that one connection may wait for. Above it, the server stops reading from the connection.
    public var pagesWaitingMax = 4
    public var importBatchMax = 500
    public var administration = AdministrationLimits()
    public var journal = JournalLimits()
    public var sessionsPerUserMax = 100
    public var providersPerTenantMax = 50
    /// Tokens and codes of identity providers: groups make some of them long.
    public var providerTokenMax = 16 * 1024

    public var continueURLMax = 2_048
    public var localeMax = 35  // tags of languages: RFC 5646 §4.4.1
    /// The subject, the text and the HTML of one mail together.
    public var mailBytesMax = 64 * 1024
    /// A mail server's password; 32 to 256 bytes sign a webhook.
    public var smtpPasswordMax = 1_024
    /// Entries of a tenant's `allowed_continue_domains`.
    public var continueDomainsMax = 50
    public var sendsPerMailboxAndHour = 5
    public var sendsPerAddressAndHour = 30
    public var testMailsPerTenantAndHour = 10  // EmailConfigs.Test
    // SMS that strangers can have sent cost money and wake people: docs/operations.md, "SMS".
    public var smsPerNumberAndHour = 5
    public var smsPerNumberAndDay = 15
    /// Codes that are for one user, or for one sign-in that waits for its second factor.
    public var smsPerSubjectAndHour = 10
    public var smsPerAddressAndHour = 20
    /// To the numbers of one region that the tenant does not name.
    public var smsPerRegionAndHour = 100
    public var smsPerTenantAndHour = 1_000
    public var smsPerCallerAndHour = 1_000
    /// Open RECOVER_EMAIL codes of an account. Above it, changes wait: voiding the oldest would void the owner's.
    public var waysBackPerUserMax = 20

    // Guesses of passwords, and questions that tell who has an account
    /// Of an end user's address (IPv6: the first 64 bits), within a tenant and over all of them, before more are
    /// refused; and how many of them are forgotten in an hour.
    public var guessesPerAddress = 30
    public var guessesPerAddressAndHour = 360
    /// The guesses of one tenant, and of one credential, before unknown devices and addresses have to wait.
    public var guessesPerTenantAndHour = 3_600
    public var guessesPerCallerAndHour = 3_600
    /// The longest time that unknown devices and addresses wait, and how many may wait at once: in all, and of one
    /// tenant.
    public var strangerWaitMax = Duration.seconds(5)
    public var strangersWaitingMax = 256
    public var strangersWaitingPerTenantMax = 64
    /// The accounts, devices and addresses whose guesses are remembered, for each kind. docs/decisions/0028 says which
    /// are forgotten beyond it.
    public var throttleEntriesMax = 200_000
    /// The different guesses of one second that survive a restart, and that other nodes of a cluster learn of.
    public var guessesKeptPerSecond = 256
    /// Rows of other nodes' guesses that wait to be counted, while this node starts or cannot read them.
    public var guessRowsWaitingMax = 10_000

    // Service accounts
    /// Keys of one account that count: a token that names none is tried with each.
    public var serviceAccountKeysMax = 10
    /// The keys of one account together with the revoked and expired ones. The oldest of those are dropped first.
    public var serviceAccountKeysKeptMax = 100

    // Quotas: docs/decisions/0019-quotas.md says why these numbers
    /// What a tenant's rows may take: at most an eighth of the map, whatever is said here.
    public var tenantStoredBytesMax = 8 << 30
    /// The changes per second by end users of one tenant. Here and below, four seconds' worth may come at once.
    public var mutationsPerTenantPerSecond = 1_000
    /// The changes per second by one API key or service account that acts for end users.
    public var mutationsPerCallerPerSecond = 500
    public var writtenBytesPerCallerAndHour = 1 << 30
    /// The changes per second by one tenant-admin.
    public var mutationsPerAdminPerSecond = 2_000
    public var writtenBytesPerAdminAndHour = 8 << 30
    public var anonymousSignUpsPerAddressAndHour = 30
    public var anonymousSignUpsPerTenantAndHour = 10_000
    /// The unused anonymous users that are deleted per minute, of all tenants together.
    public var anonymousUsersExpiredPerSweep = 500

    // Idempotency
    public var idempotencyKeyMax = 256
    /// The records of one credential for one end user. Records without an end user count by their bytes only.
    public var idempotencyRecordsPerSubjectMax = 1_000
    public var idempotencyLifetime = Duration.hours(24)

    // Logs
    /// The lines of the access log that its destination has not taken yet. What does not fit is dropped and counted.
    public var accessLogBufferMax = 4 << 20

    // Metrics: docs/decisions/0075-metrics-of-bounded-size.md
    /// The pairs of a method and a reason whose failures are counted apart.
    public var failuresCountedApartMax = 40
    /// The tenants whose calls are counted, and how many of them /metrics shows.
    public var tenantsCountedMax = 200
    public var tenantsShownMax = 20
    /// The messages in outboxes that are counted at a time.
    public var outboxCountedMax = 10_000

    // Refusals
    public var denialsKeptPerTenant = 10_000
    /// The refusals of all tenants: 1 GiB of records of at most 268 bytes. Each tenant keeps its last
    /// `denialsKeptAtLeast` in any case.
    public var denialsKeptInAll = 4_000_000
    public var denialsKeptAtLeast = 100
    public var denialsRecordedPerSecond = 200

    // API keys, and calls that are refused because of their credential
    public var addressRangesPerKeyMax = 32
    public var secretOverlapMax = Duration.days(30)
    /// Events of one credential's refused calls that are written at once, and how long until there is one more.
    public var deniedCallsAtOnce = 10
    public var deniedCallsEvery = Duration.minutes(10)
    /// The same of all credentials together.
    public var deniedCallsAtOnceInAll = 100
    public var deniedCallsPerMinuteInAll = 60
    /// Credentials whose refused calls are counted at a time.
    public var deniedCallersMax = 1_000

    public init() {}
}

/// Limits that many objects refer to: a copy takes more than a kilobyte.
public final class SharedLimits: Sendable {
    public let values: Limits

    public init(_ values: Limits) { self.values = values }
}
