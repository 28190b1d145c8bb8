import Messages

/// Which tables a store holds. A table's id and name never change their meaning; a new table takes a new id.
public enum Schema {
    /// Raised when records or keys change so that older servers must not open the store. A newer server opens an older
    /// store and marks it with its own version.
    ///
    /// - 2: Servers of version 1 would mail decoys, which stand in the outbox for addresses without an account, and
    ///   mails whose links are not filled in yet.
    public static let version: UInt32 = 2

    /// The store's own tables are below, the domain's from here on.
    public static let firstDomainTableID: UInt8 = 16

    /// `"schema"` → version (4 bytes, big-endian); `"sequence"` → the last global event sequence (8 bytes); `"usage"` →
    /// nothing, once the rows of every tenant were counted; `"witness"` → the id by which the witness knows the store;
    /// `"time"` → the highest time seen (µs, 8 bytes).
    static let meta = Table<[UInt8], [UInt8]>(id: 0, name: "meta")
    /// time (µs, 8 bytes) ‖ table id ‖ key → nothing.
    static let expiry = Table<ExpiryKey, [UInt8]>(id: 1, name: "expiry")
    /// tenant ‖ 0x00 ‖ sequence → event.
    static let events = Table<EventKey, [UInt8]>(id: 2, name: "events", owner: .keyPrefix)
    /// tenant ‖ 0x00 → the tenant's newest event: sequence and hash.
    static let eventHeads = Table<TenantPrefix, [UInt8]>(id: 3, name: "event_heads", owner: .keyPrefix)
    /// tenant ‖ 0x00 → what the tenant's rows take.
    static let tenantUsage = Table<TenantPrefix, StoredTenantUsage>(id: 4, name: "tenant_usage")

    /// Not a table: the MACs in the file `witness` are made as if it were one.
    static let witnessID: UInt8 = 54

    static let storeTables = [
        meta.declaration, expiry.declaration, events.declaration, eventHeads.declaration, tenantUsage.declaration,
    ]
}
