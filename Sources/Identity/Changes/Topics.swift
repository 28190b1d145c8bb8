public import Base
public import Store

extension ChangeTopic {
    /// The account or one of its sessions.
    public static func user(_ key: UserKey) -> ChangeTopic { ChangeTopic("user", key) }
    /// The refusals of the tenant's self-service toggles.
    public static func denials(_ tenantID: Text) -> ChangeTopic { ChangeTopic("denials", tenantID) }
    /// The tenant's settings.
    public static func tenant(_ tenantID: Text) -> ChangeTopic { ChangeTopic("tenant", tenantID) }
    /// What the tenant's verifiers have to refuse.
    public static func revocations(_ tenantID: Text) -> ChangeTopic { ChangeTopic("revocations", tenantID) }
    public static let allRevocations = ChangeTopic("all revocations", true)
    /// The credentials callers have.
    public static let callers = ChangeTopic("callers", true)
}
