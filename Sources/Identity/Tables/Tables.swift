public import Messages
import Signing
public import Store

/// Every table of the domain: what it maps, roughly in the order of the ids. An id or a name is never used for another
/// table.
public enum Tables {
    /// (tenant, uid) → the account.
    public static let users = Table<UserKey, StoredUser>(
        id: 16, name: "users", owner: .countedKeyPrefix, purge: .withTenant, news: .marked)
    /// (tenant, canonical email) → uid. A put in the user's own transaction makes an email unique.
    public static let userByEmail = Table<TenantTextKey, [UInt8]>(
        id: 17, name: "user_by_email", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, phone number) → uid.
    public static let userByPhone = Table<TenantTextKey, [UInt8]>(
        id: 18, name: "user_by_phone", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, SHA-256 of provider, raw id and issuer) → uid.
    public static let userByProvider = Table<TenantHashKey, [UInt8]>(
        id: 19, name: "user_by_provider", owner: .keyPrefix, purge: .withTenant)
    /// session id → the session.
    public static let sessions = Table<SessionKey, StoredSession>(
        id: 20, name: "sessions", owner: .field(StoredSession.FieldNumber.tenantID),
        purge: .otherwise("removeSessions finds them by session_by_user"), news: .marked)
    /// (tenant, uid, session id) → nothing.
    public static let sessionByUser = Table<UserSessionKey, [UInt8]>(
        id: 21, name: "session_by_user", owner: .keyPrefix,
        purge: .otherwise("removeSessions deletes them with their sessions"))
    /// tenant → settings and toggles; a deleted tenant leaves a tombstone.
    public static let tenants = Table<TenantPrefix, StoredTenant>(
        id: 22, name: "tenants", owner: .keyPrefix,
        purge: .otherwise("a tombstone stays, because an id is never used again"), news: .ofRow)
    /// API key id → role, scope and the hash of the key.
    public static let apiKeys = Table<TextKey, StoredApiKey>(
        id: 23, name: "api_keys", owner: .nobody,
        purge: .otherwise("the sweep deletes those of deleted tenants (OrphanedCredentials)"), news: .ofRow)
    /// (tenant, SHA-256 of the secret) → a sealed secret that imported password hashes need.
    public static let hashSecrets = Table<TenantHashKey, StoredHashSecret>(
        id: 25, name: "hash_secrets", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, sequence) → a refusal of a self-service toggle.
    public static let denials = Table<SequenceKey, Denial>(
        id: 26, name: "denials", owner: .keyPrefix, purge: .withTenant, news: .ofTenant)
    /// tenant → the first and the last sequence of its refusals.
    public static let denialHeads = Table<TenantPrefix, StoredDenialHead>(
        id: 27, name: "denial_heads", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, hour, toggle, operation) → how often.
    public static let denialCounts = Table<DenialCountKey, StoredCount>(
        id: 28, name: "denial_counts", owner: .keyPrefix, purge: .withTenant)
    /// SHA-256 of (caller, tenant, method, idempotency-key) → the answer that was given.
    public static let idempotency = Table<HashKey, StoredIdempotency>(
        id: 29, name: "idempotency", owner: .field(StoredIdempotency.FieldNumber.tenantID),
        purge: .otherwise("they stay for a day: a repeated Tenants.Delete is answered from them"))

    /// (tenant, kind of password hash) → how many users have one: unknown users are made to look like them.
    public static let passwordHashKinds = Table<TenantTextKey, StoredCount>(
        id: 30, name: "password_hash_kinds", owner: .keyPrefix, purge: .withTenant)

    /// caller → how many idempotency records it has: older servers counted this; rows are deleted as their records
    /// expire.
    public static let idempotencyCounts = Table<TextKey, StoredCount>(
        id: 31, name: "idempotency_counts", owner: .nobody, purge: .noTenant)

    /// service account id → role, scope and rights; a deleted account leaves a tombstone.
    public static let serviceAccounts = Table<TextKey, StoredServiceAccount>(
        id: 32, name: "service_accounts", owner: .nobody,
        purge: .otherwise("the sweep deletes those of deleted tenants (OrphanedCredentials)"), news: .ofRow)
    /// (service account id, key id) → the public key.
    public static let serviceAccountKeys = Table<ServiceAccountKeyKey, StoredServiceAccountKey>(
        id: 33, name: "service_account_keys", owner: .nobody, purge: .otherwise("they go with their account"),
        news: .ofRow)
    /// SHA-256 of (issuer, jti) → the expiry of a token that was used and counts once.
    public static let usedTokenIDs = Table<HashKey, StoredUsedTokenID>(
        id: 34, name: "used_token_ids", owner: .nobody, purge: .noTenant)
    /// (tenant, provider id) → how the tenant uses an identity provider, with its client secret sealed.
    public static let providers = Table<TenantTextKey, StoredProvider>(
        id: 35, name: "providers", owner: .keyPrefix, purge: .withTenant, news: .ofRow)
    /// (tenant, SHA-256 of a code that was sent) → the code's kind and subject.
    public static let oobCodes = Table<TenantHashKey, StoredOobCode>(
        id: 36, name: "oob_codes", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, hash of the subject, kind, code's hash) → nothing: the codes of a kind that an account or address has.
    public static let oobCodeBySubject = Table<OobSubjectKey, [UInt8]>(
        id: 37, name: "oob_code_by_subject", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, message id) → a mail or SMS to be delivered.
    public static let outbox = Table<TenantTextKey, StoredOutboxMessage>(
        id: 38, name: "outbox", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, mail or SMS, time of the next attempt, message id) → nothing.
    public static let outboxDue = Table<OutboxDueKey, [UInt8]>(
        id: 39, name: "outbox_due", owner: .keyPrefix, purge: .withTenant)

    /// tenant → its settings for outgoing mail, with their secrets sealed.
    public static let emailConfigs = Table<TenantPrefix, StoredEmailConfig>(
        id: 40, name: "email_configs", owner: .keyPrefix, purge: .withTenant)

    /// (tenant, sequence) → a revocation for its verifiers; the sequence counts the revocations of all tenants.
    public static let revocations = Table<SequenceKey, Revocation>(
        id: 41, name: "revocations", owner: .keyPrefix,
        purge: .otherwise("they stay until no token is left that they refuse"), news: .ofTenant)
    /// sequence → the tenant of that revocation.
    public static let revocationTenants = Table<RevocationKey, [UInt8]>(
        id: 42, name: "revocation_tenants", owner: .nobody, purge: .noTenant, news: .ofTable)

    /// (tenant, hash of a caller and of an end user) → how many idempotency records they have.
    public static let idempotencyCountsBySubject = Table<TenantHashKey, StoredCount>(
        id: 45, name: "idempotency_counts_by_subject", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, uid) → nothing, or eight bytes: when the user's last session cookie ends. Users who signed up
    /// anonymously, until they have another way to sign in.
    public static let anonymousUsers = Table<UserKey, [UInt8]>(
        id: 46, name: "anonymous_users", owner: .keyPrefix, purge: .withTenant)

    /// SHA-256 of (tenant, proof id) → the expiry of a proof in a pending token that was used and counts once.
    public static let usedProofs = Table<HashKey, StoredUsedTokenID>(
        id: 50, name: "used_proofs", owner: .nobody, purge: .noTenant)

    /// (tenant, provider id) → the issuers whose identities count besides those of the provider's present issuer.
    public static let identityIssuers = Table<TenantTextKey, StoredIdentityIssuers>(
        id: 51, name: "identity_issuers", owner: .keyPrefix, purge: .withTenant)

    /// (time, server, row) → the guesses that a server counted in a second. They count for an hour.
    public static let guesses = Table<GuessRowKey, StoredGuesses>(
        id: 48, name: "guesses", owner: .nobody, purge: .noTenant, news: .ofRow)

    /// A time at which every revocation up to a sequence was committed → that sequence.
    public static let revocationTimes = Table<TimeKey, [UInt8]>(
        id: 56, name: "revocation_times", owner: .nobody, purge: .noTenant)

    /// Kind of proof → the latest expiry of proofs that count as used, because the rows that recorded their use may be
    /// gone.
    public static let spentProofs = Table<TextKey, [UInt8]>(
        id: 57, name: "spent_proofs", owner: .nobody, purge: .noTenant)

    /// (tenant, SHA-256 of a session_info) → the code that was sent to a phone number.
    public static let verificationCodes = Table<TenantHashKey, StoredVerificationCode>(
        id: 70, name: "verification_codes", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, hash of what is budgeted) → how much of its budget of SMS was spent. A credential's budget counts over
    /// all tenants; its row lies with those of the default pool.
    public static let smsBudgets = Table<TenantHashKey, StoredSmsBudget>(
        id: 71, name: "sms_budgets", owner: .keyPrefix, purge: .withTenant)
    /// tenant → its settings for SMS, with the webhook's secret sealed.
    public static let smsConfigs = Table<TenantPrefix, StoredSmsConfig>(
        id: 72, name: "sms_configs", owner: .keyPrefix, purge: .withTenant)

    /// (tenant, uid) → the secrets of the user's second factors.
    public static let secondFactors = Table<UserKey, StoredSecondFactors>(
        id: 73, name: "second_factors", owner: .keyPrefix, purge: .withTenant)
    /// (tenant, random id) → a sign-in that waits for a second factor.
    public static let pendingSignIns = Table<TenantHashKey, StoredPendingSignIn>(
        id: 74, name: "pending_sign_ins", owner: .keyPrefix, purge: .withTenant)

    /// (tenant, time of creation, uid) → nothing: users in the order in which they were created.
    public static let userByCreation = Table<UserTimeKey, [UInt8]>(
        id: 77, name: "user_by_creation", owner: .keyPrefix, purge: .withTenant)
    /// id that is derived from a certificate's name and authority → the role of its holders.
    public static let certificateMappings = Table<TextKey, StoredCertificateMapping>(
        id: 80, name: "certificate_mappings", owner: .nobody,
        purge: .otherwise("the sweep deletes those of deleted tenants (OrphanedCredentials)"), news: .ofRow)

    /// (tenant, revision) → the sequence of the event that tells of this change of the tenant's settings, 8 bytes.
    public static let settingsChanges = Table<SequenceKey, [UInt8]>(
        id: 97, name: "settings_changes", owner: .keyPrefix, purge: .withTenant)

    /// (tenant, API key id) → nothing: the keys that are bound to a tenant.
    public static let apiKeysOfTenants = Table<TenantTextKey, [UInt8]>(
        id: 98, name: "api_keys_of_tenants", owner: .keyPrefix, purge: .withTenant)
    /// API key id → when it was last seen in use.
    public static let apiKeyUses = Table<TextKey, StoredApiKeyUse>(
        id: 99, name: "api_key_uses", owner: .nobody, purge: .otherwise("they go with their key"))

    /// tenant → its blocking hooks, with their secrets sealed.
    public static let hookConfigs = Table<TenantPrefix, StoredHookConfig>(
        id: 100, name: "hook_configs", owner: .keyPrefix, purge: .withTenant)

    /// Piece of work → the server of a cluster that does it for all. Empty outside of a cluster.
    public static let leases = Table<TextKey, StoredLease>(
        id: 122, name: "leases", owner: .nobody, purge: .noTenant)

    /// The tables that the store is opened with. The list `declared` is generated from this file.
    public static let all: [TableDeclaration] = SigningTables.all + declared
}
