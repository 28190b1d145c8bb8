public import Base
public import Store

extension ChangeTopic {
    /// The account or one of its sessions.
    public static func user(_ key: UserKey) -> ChangeTopic { ChangeTopic("user", key.bytes) }
    /// The refusals of the tenant's self-service toggles.
    public static func denials(_ tenantID: Text) -> ChangeTopic { ChangeTopic("denials", tenantID.bytes) }
    /// The tenant's settings.
    public static func tenant(_ tenantID: Text) -> ChangeTopic { ChangeTopic("tenant", tenantID.bytes) }
    /// The topic of the revocations that the tenant's verifiers follow.
    public static func revocations(_ tenantID: Text) -> ChangeTopic { ChangeTopic("revocations", tenantID.bytes) }
    public static let allRevocations = ChangeTopic("all revocations")
    /// The credentials callers have.
    public static let callers = ChangeTopic("callers")
}
