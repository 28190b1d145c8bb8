/// Every bound of the server in one place: each has a test at the limit and one past it.
///
/// Sizes are bytes. A test may shrink any of them; docs/limits.md says which of them an operator sets.
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
    /// Requests that are not answered, as they are decoded, and messages of streams that no handler has taken, of a
    /// connection with a credential. Above it, the server stops reading from the connection.
    public var waitingBytesMax = 1024 * 1024
    /// The request of a stream to which only the server writes. The stream keeps it for as long as it lives.
    public var streamRequestBytesMax = 16 * 1024
    /// What a connection without a credential may have waiting: answers it does not read, requests that are not
    /// answered, and messages of its streams that no handler has taken. Above it, the server stops reading from the
    /// connection.
    public var waitingBytesMaxUnauthenticated = 64 * 1024
    public var streamWindow = 256 * 1024
    /// Cancels of unfinished work per connection and second, before the connection is closed.
    public var cancelsPerSecondMax = 200
    /// Pings per connection and second, before the connection is closed; by gRPC, of those that follow no output.
    public var pingsPerSecondMax = 100

    // gRPC over HTTP/2
    /// The names and values of one request's header fields, with 32 bytes for each field (RFC 9113 §6.5.2).
    public var headerListMax = 16 * 1024
    /// The frames that carry the headers of one request, and the bytes in them.
    public var headerFramesMax = 8
    public var headerBlockMax = 32 * 1024
    /// The bytes that a client without a credential may send on one stream before the server takes them. With a
    /// credential, it is `streamWindow`.
    public var streamWindowUnauthenticated = 16 * 1024
    /// Frames that carry nothing (docs/grpc.md lists them) per connection and second, before the connection is closed.
    public var idleFramesPerSecondMax = 1_000

    // Memory of connections: docs/decisions/0038-memory-of-connections.md
    /// The memory of all connections together: requests that are not answered, decoded, and answers that are not taken.
    public var connectionMemoryMax = 256 << 20
    /// When three quarters of `connectionMemoryMax` are taken, a connection whose tenant holds more than is free may
    /// hold this much. When seven eighths are taken, a quarter of it, and no further request of its is read.
    public var connectionMemoryShare = 64 * 1024
    /// If a connection has a credential, and its peer took something or completed a request within this time, it is
    /// never closed for the memory it holds.
    public var unreadPatience = Duration.seconds(1)

    /// The limits of messages and of the envelopes around them.
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
    /// Connections whose first credential is the same, or whose first credentials are bound to the same tenant. Tenants
    /// get fewer when few places are left.
    public var connectionsPerCallerMax = 8_000
    /// Streams that were begun with the same credential, or with credentials bound to the same tenant, on all
    /// connections together. Streams of end users (Sessions.WatchAuthState) are counted apart, up to the same number.
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
    /// If nobody takes a backup's next bytes for this long, the backup is aborted: it holds a snapshot of the store.
    public var backupStallMax = Duration.seconds(30)
    /// If a backup is taken more slowly than this, on average since it began, it is aborted after `backupSlowMax`.
    public var backupBytesPerSecondMin = 64 * 1024
    public var backupSlowMax = Duration.seconds(600)
    public var drainTimeout = Duration.seconds(10)
    /// If a peer with a credential has been silent for the interval, it gets a PING. If it stays silent for the timeout
    /// after that, it counts as gone.
    public var keepaliveInterval = Duration.seconds(300)
    public var keepaliveTimeout = Duration.seconds(20)
    /// The listeners of one server: TCP addresses and Unix domain sockets together.
    public var listenersMax = 16
    /// The bytes of a proxy's header (PROXY protocol, version 2), with all its fields; and the networks of proxies.
    public var proxyHeaderMax = 536
    public var proxyNetworksMax = 64

    // TLS: docs/decisions/0063-tls-on-the-port.md
    /// From accepting a connection to the end of its handshake.
    public var tlsHandshakeTimeout = Duration.seconds(5)
    /// Handshakes in flight, of all addresses and of one (IPv6: of one /64). One more closes the oldest.
    public var tlsHandshakesMax = 512
    public var tlsHandshakesPerAddressMax = 256
    /// After this time, a loop continues no further handshake before it looks at its other connections. One it may.
    public var tlsHandshakeTimePerTurnMax = Duration.milliseconds(1)
    /// The bytes of the certificates that a client shows.
    public var tlsCertificateListMax = 64 * 1024
    /// KeyUpdates of a client; one more for each MiB that it sends.
    public var tlsKeyUpdatesMax = 16
    /// The bytes of a file with certificates, a key or a revocation list.
    public var tlsFileMax = 1024 * 1024

    // Work
    public var requestTimeoutMax = Duration.seconds(30)
    public var passwordQueueMax = 64
    public var passwordQueuePerTenantMax = 32
    /// The memory of all hashes that are computed at the same time. It is never less than our own hashes need on all
    /// workers.
    public var passwordMemoryMax = 320 << 20
    /// How long a password worker without work keeps the memory of a hash.
    public var passwordArenaKept = Duration.seconds(10)
    /// The memory and the time that one check of an imported hash may take, unless its tenant has
    /// `allow_costly_hashes`.
    public var importedHashMemoryMax = 128 << 20
    public var importedHashTimeMax = Duration.milliseconds(250)
    public var blockingQueueMax = 1_024
    public var signingQueueMax = 4_096
    public var signingQueuePerTenantMax = 1_024
    /// The threads that call other servers; how many names are looked up at a time; how many requests and mails one
    /// tenant may have running, and waiting for a thread; and how long one may wait for it.
    public var outboundWorkers = 32
    public var outboundLookupsMax = 64
    public var outboundRequestsPerTenantMax = 8
    public var outboundWaitingPerTenantMax = 32
    public var outboundWaitMax = Duration.seconds(3)
    /// The processor time, per ten seconds, for what the identity providers of one tenant publish and answer.
    public var providerKeyTimePerTenantMax = Duration.milliseconds(100)
    /// The writes of one commit: at most this many, and no further one begins after this time.
    public var writeBatchMax = 512
    public var writeBatchTimeMax = Duration.milliseconds(10)
    /// A write begins no further user or tenant after this many, this many changed records, or `writeBatchTimeMax`.
    public var sliceItemsMax = 50
    public var sliceChangesMax = 500
    /// The writes that may wait. One tenant takes half of the free places at most.
    public var writeQueueMax = 16_384
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
    public var channel = ChannelLimits()
    public var journal = JournalLimits()
    public var sessionsPerUserMax = 100
    public var providersPerTenantMax = 50
    /// Tokens and codes of identity providers: groups make some of them long.
    public var providerTokenMax = 16 * 1024

    public var continueURLMax = 2_048
    public var localeMax = 35  // tags of languages: RFC 5646 §4.4.1
    /// The subject, the text and the HTML of one mail together.
    public var mailBytesMax = 64 * 1024
    public var emailTemplatesBytesMax = 256 * 1024  // of all of a tenant's: each mail reads them
    /// The bytes of a mail server's password. The secret that signs a webhook has 32 to 256 bytes.
    public var smtpPasswordMax = 1_024
    /// Entries of a tenant's `allowed_continue_domains`.
    public var continueDomainsMax = 50
    public var sendsPerMailboxAndHour = 5
    public var strangersSendsPerMailboxAndHour = 10  // asked for by all accounts that have another address
    public var sendsPerAddressAndHour = 30
    public var testMailsPerTenantAndHour = 10  // EmailConfigs.Test
    // Strangers can have SMS sent, which cost money and wake people: docs/mail.md, "SMS".
    public var smsPerNumberAndHour = 5
    public var smsPerNumberAndDay = 15
    /// Codes that are for one user, or for one sign-in that waits for its second factor.
    public var smsPerSubjectAndHour = 10
    public var smsPerAddressAndHour = 20
    /// SMS to the numbers of one region, if the tenant does not name the region.
    public var smsPerRegionAndHour = 100
    public var smsPerTenantAndHour = 1_000
    public var smsPerCallerAndHour = 1_000
    /// Open RECOVER_EMAIL codes of an account. Above it, changes wait: voiding the oldest would void the owner's.
    public var waysBackPerUserMax = 20
    /// The same for valid REJECT_EMAIL codes, and mails about the account's email.
    public var rejectionsPerUserMax = 20

    // Guesses of passwords, and questions that tell who has an account
    /// The guesses from an end user's address (IPv6: the first 64 bits), counted within a tenant and over all tenants,
    /// before more are refused; and how many of these guesses are forgotten in an hour.
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
    /// Keys of one account that are neither revoked nor expired. A token that names no key is tried with each of them.
    public var serviceAccountKeysMax = 10
    /// All keys of one account, with revoked and expired ones. The oldest revoked or expired keys are dropped first.
    public var serviceAccountKeysKeptMax = 100

    // Quotas: docs/decisions/0019-quotas.md says why these numbers
    /// The bytes that a tenant's rows may take. Whatever the value here, the limit is at most an eighth of the map.
    public var tenantStoredBytesMax = 8 << 30
    /// The least that changes which end something may add beyond a tenant's bytes. Strangers can bring about rows of
    /// refused calls, which count as the tenant's; the reserve is larger than all of them.
    public var tenantReserveMin = 8 << 20
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
    /// The bytes of access log lines that the destination has not taken yet. Further lines are dropped and counted.
    public var accessLogBufferMax = 4 << 20

    // Metrics: docs/decisions/0075-metrics-of-bounded-size.md
    /// The pairs of a method and a reason whose failures are counted separately.
    public var failuresCountedApartMax = 40
    /// The tenants whose calls are counted, and how many of them /metrics shows.
    public var tenantsCountedMax = 200
    public var tenantsShownMax = 20
    /// The messages among which dead ones are counted, and their bytes that one count reads: the next goes on there.
    public var outboxCountedMax = 10_000
    public var outboxCountedBytesMax = 1 << 20
    /// The tenants among whose waiting messages the most overdue one is looked for.
    public var outboxTenantsMax = 1_000

    // Refusals
    public var denialsKeptPerTenant = 10_000
    /// Of all tenants: 1.2 GiB of records of at most 315 bytes. Each tenant keeps its last `denialsKeptAtLeast`.
    public var denialsKeptInAll = 4_000_000
    public var denialsKeptAtLeast = 100
    public var denialCountsKept = Duration.days(90)
    public var denialsRecordedPerSecond = 200

    // API keys, and calls that are refused because of their credential
    public var addressRangesPerKeyMax = 32
    public var secretOverlapMax = Duration.days(30)
    /// How many events of one credential's refused calls are written at once, and how long until one more is allowed.
    public var deniedCallsAtOnce = 10
    public var deniedCallsEvery = Duration.minutes(10)
    /// The same of all credentials together.
    public var deniedCallsAtOnceInAll = 100
    public var deniedCallsPerMinuteInAll = 60
    /// Credentials whose refused calls are counted at a time.
    public var deniedCallersMax = 1_000

    public init() {}
}
