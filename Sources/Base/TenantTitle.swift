/// The words for a tenant in messages.
package enum TenantTitle {
    /// `tenant "acme"`, or `the default pool` for the empty id.
    package static func of(_ tenantID: Text) -> String {
        tenantID.isEmpty ? "the default pool" : "tenant \"\(tenantID)\""
    }
}
