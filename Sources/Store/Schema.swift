import Messages

/// The tables that a store holds. A table's id and name never change their meaning; a new table takes a new id.
public enum Schema {
    /// Raised when records or keys change so that older servers must not open the store. A newer server opens an older
    /// store and marks it with its own version.
    ///
    /// - 2: Servers of version 1 would mail decoys, which stand in the outbox for addresses without an account, and
    ///   mails whose links are not filled in yet.
    /// - 3: Servers of version 2 would report a log of events that begins at a checkpoint as broken.
    /// - 4: Servers of version 3 would neither count users nor keep the order in which they were created.
    /// - 5: Servers of version 4 would take a long value, which lies in pieces, for a damaged one.
    public static let version: UInt32 = 5

    /// The version of the records in a journal's entry: the last `version` that changed records or keys. A node that
    /// knows it can apply the entry, however its own file keeps the records.
    static let recordVersion: UInt32 = 4

    /// The store's own tables are below, the domain's from here on.
    public static let firstDomainTableID: UInt8 = 16

    /// `"schema"` → version (4 bytes, big-endian); `"upgraded"` → the version of the last `Migration` that ran (4);
    /// `"sequence"` → the last global event sequence (8); `"witness"` → the id by which the witness knows the store;
    /// `"time"` → the highest time seen (µs, 8); `"epoch"` → what the last restore drew (16); `"restored"` → the time
    /// after the newest record of the last restored backup (µs, 8); `"mended"` → that no damaged row left anything (1,
    /// `Store.mend`); `"journal"` → the store's place in its cluster's journal (56, `JournalPlace`).
    static let meta = Table<[UInt8], [UInt8]>(id: 0, name: "meta", owner: .nobody, purge: .noTenant)
    /// time (µs, 8 bytes) ‖ table id ‖ key → nothing.
    static let expiry = Table<ExpiryKey, [UInt8]>(id: 1, name: "expiry", owner: .nobody, purge: .noTenant)
    /// tenant ‖ 0x00 ‖ sequence → event.
    static let events = Table<EventKey, [UInt8]>(
        id: 2, name: "events", owner: .keyPrefix, purge: .otherwise("deleteEvents leaves a checkpoint"))
    /// tenant ‖ 0x00 → the tenant's newest event: sequence and hash.
    static let eventHeads = Table<TenantPrefix, [UInt8]>(
        id: 3, name: "event_heads", owner: .keyPrefix, purge: .otherwise("deleteEvents leaves a checkpoint"),
        news: .ofTenant)
    /// tenant ‖ 0x00 → the space that the tenant's rows take.
    static let tenantUsage = Table<TenantPrefix, StoredTenantUsage>(
        id: 4, name: "tenant_usage", owner: .nobody, purge: .otherwise("goes with the tenant's last row"))

    /// tenant ‖ 0x00 → the last deleted event of the tenant.
    static let eventCheckpoints = Table<TenantPrefix, [UInt8]>(
        id: 5, name: "event_checkpoints", owner: .keyPrefix,
        purge: .otherwise("they stay, so that nobody can pass other events for the tenant's"))

    /// 16 bytes named after a row ‖ index (4 bytes) → a piece of the row's value (`LongValueMark`).
    static let pieces = Table<[UInt8], [UInt8]>(id: 6, name: "pieces", owner: .nobody, purge: .noTenant)

    /// Not a table, as `LongValueMark.tableID` (7): the MACs in the file `witness` are made as if it were one.
    static let witnessID: UInt8 = 54
}
