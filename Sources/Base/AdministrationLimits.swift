/// The part of `Limits` that is about the methods of administrators.
public struct AdministrationLimits: Sendable {
    /// What Users.BatchGet takes of each kind of name.
    public var batchGetMax = 100
    /// What Users.BatchDelete takes.
    public var batchDeleteMax = 1_000
    /// How many tenants one call of Tenants.UpdateMany changes.
    public var tenantsUpdatedPerCallMax = 200
    public var tenantsUpdatedPerCallDefault = 50

    public init() {}
}
