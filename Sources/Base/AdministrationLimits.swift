/// The part of `Limits` that is about the methods of administrators.
public struct AdministrationLimits: Sendable {
    /// What Users.BatchGet takes of each kind of name.
    public var batchGetMax = 100
    /// What Users.BatchDelete takes.
    public var batchDeleteMax = 1_000
    /// The hash specs that the rows of one import may name.
    public var importHashSpecsMax = 1_000
    /// The time that all parameters may take together which one Users.VerifyHashSpec tries.
    public var hashTrialTimeMax = Duration.seconds(1)
    /// How many tenants one call of Tenants.UpdateMany changes.
    public var tenantsUpdatedPerCallMax = 200
    public var tenantsUpdatedPerCallDefault = 50
    /// How many users one call of Users.UpdateMany changes.
    public var usersUpdatedPerCallMax = 500
    /// What Project.TestPermissions takes.
    public var methodsTestedMax = 500
    /// API keys in force that are bound to one tenant, where an admin of that tenant makes another one.
    public var apiKeysPerTenantMax = 100
    /// API keys whose use is noted and not written yet. Above it a use is not noted.
    public var apiKeyUsesWaitingMax = 10_000

    public init() {}
}
