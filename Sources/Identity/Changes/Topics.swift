public import Base
public import Store

// The topics that streams and watches follow. All but the first and the last are derived from the rows that were
// changed (`RowNews`).

extension ChangeTopic {
    /// The account or one of its sessions. The key of a session's row does not name its user, so the writer that
    /// changes a session announces this topic.
    public static func user(_ key: UserKey) -> ChangeTopic { ChangeTopic(userName, key.bytes) }
    private static let userName: Text = "user"
    /// The refusals of the tenant's self-service toggles.
    public static func denials(_ tenantID: Text) -> ChangeTopic { Tables.denials.topic(ofTenant: tenantID) }
    /// The tenant's event log.
    public static func events(_ tenantID: Text) -> ChangeTopic { ReadTransaction.eventsTopic(tenant: tenantID) }
    /// The tenant's settings.
    public static func tenant(_ tenantID: Text) -> ChangeTopic { Tables.tenants.topic(of: TenantPrefix(tenantID)) }
    /// The topic of the revocations that the tenant's verifiers follow.
    public static func revocations(_ tenantID: Text) -> ChangeTopic { Tables.revocations.topic(ofTenant: tenantID) }
    public static var allRevocations: ChangeTopic { Tables.revocationTenants.topic }
    /// Some credential of a caller. Only this process announces it (`CredentialWatch`); a stream follows the rows of
    /// its own caller (`CallerDirectory.topics`).
    public static let credentials = ChangeTopic("credentials")
}
