import Base
public import Messages
import Rules
public import Store

extension ReadTransaction {
    /// TENANT_NOT_FOUND for the scope of a tenant that does not exist.
    func checkExists(_ scope: Scope?) throws {
        if case .tenantID(let tenantID) = scope?.tenants { _ = try liveTenant(tenantID) }
    }

    /// Whether the scope is one tenant, which was deleted. A credential with such a scope counts as deleted, too: lists
    /// leave it out, and the sweep deletes it (`OrphanedCredentials`).
    ///
    /// A tenant with a damaged record is only taken for deleted if another record says so.
    public func isOfDeletedTenant(_ scope: Scope?) throws -> Bool {
        guard case .tenantID(let tenantID) = scope?.tenants else { return false }
        do {
            let isDeleted = try withValue(Tables.tenants, TenantPrefix(tenantID)) { record in
                firstVarint(StoredTenant.FieldNumber.deleted, in: record) ?? 0 != 0
            }
            return isDeleted ?? false
        } catch StoreError.corrupt {
            return try isRevokedAsDeleted(tenantID)
        }
    }

    /// The same for the scope in this field of an encoded credential.
    public func isOfDeletedTenant(_ credential: UnsafeRawBufferPointer, scope number: Int) throws -> Bool {
        guard let scope = firstField(number, in: credential) else { return false }
        return try isOfDeletedTenant(Scope(stored: scope))
    }
}
