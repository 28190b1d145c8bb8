public import Messages
public import Store

/// The tables of this target.
public enum SigningTables {
    /// key id → the sealed signing key.
    public static let keys = Table<TextKey, StoredSigningKey>(
        id: 24, name: "signing_keys", owner: .nobody, purge: .noTenant, news: .ofTable)

    public static let all = [keys.declaration]
}
