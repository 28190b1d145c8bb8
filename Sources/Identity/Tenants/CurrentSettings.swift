public import Base
public import Rules
public import Store

extension WriteTransaction {
    /// The tenant's settings as they are in this transaction. TENANT_NOT_FOUND.
    ///
    /// A call may wait seconds for a hash, a hook or its turn after it was admitted. By then an admin may have set a
    /// self-service toggle or made second factors mandatory, on this node or another. Whatever must not happen after
    /// such a change was acknowledged is decided by these settings and not by the call's.
    public func currentSettings(of tenantID: Text) throws -> TenantSettings {
        TenantSettings(try reading.liveTenant(tenantID))
    }
}
