/// The part of `Limits` that is about the methods of administrators, and about streams that watch a session.
public struct AdministrationLimits: Sendable {
    /// The most names of each kind in one Users.BatchGet.
    public var batchGetMax = 100
    /// The bytes that are read for one page of a search for users by a claim. The claims of each user are parsed, which
    /// takes far longer than reading them.
    public var claimBytesReadMax = 256 * 1024
    /// The most users in one Users.BatchDelete.
    public var batchDeleteMax = 1_000
    /// The hash specs that the rows of one import may name.
    public var importHashSpecsMax = 1_000
    /// The hash specs that all imports hold together. A tenant gets another place only while it holds fewer places than
    /// are free.
    public var importHashSpecsAtOnceMax = 64_000
    /// The batches that are decoded of all imports, and those that delete or change users, at a time. A tenant gets
    /// another place only while it holds fewer places than are free.
    public var importBatchesAtOnceMax = 64
    /// The time that one Users.VerifyHashSpec may take for all the parameters that it tries.
    public var hashTrialTimeMax = Duration.seconds(1)
    /// How many tenants one call of Tenants.UpdateMany changes.
    public var tenantsUpdatedPerCallMax = 200
    public var tenantsUpdatedPerCallDefault = 50
    /// How many users one call of Users.UpdateMany changes.
    public var usersUpdatedPerCallMax = 500
    /// The most methods in one Project.TestPermissions.
    public var methodsTestedMax = 500
    /// The most API keys in force that are bound to one tenant. It is checked when an admin of that tenant makes a key.
    public var apiKeysPerTenantMax = 100
    /// API keys whose use is noted and not written yet. Above this number, a use is not noted.
    public var apiKeyUsesWaitingMax = 10_000
    /// The streams of Sessions.WatchAuthState that one session, and one user with all sessions, has open on a server. A
    /// client that changes its network leaves streams behind, which end when the server finds them dead.
    public var watchesPerSessionMax = 8
    public var watchesPerUserMax = 100

    public init() {}
}
