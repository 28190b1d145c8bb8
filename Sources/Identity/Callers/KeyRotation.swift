public import Base
import Crypto
public import Messages
public import Rules
import Store

extension CallerDirectory {
    /// Gives a key a new secret; the old one stays good for `overlap`. INVALID_DURATION, API_KEY_NOT_FOUND,
    /// API_KEY_REVOKED, INSUFFICIENT_PERMISSION.
    public func rotate(
        id: Text, overlapSeconds: Int64, by admin: Caller? = nil, validateOnly: Bool, origin: Origin
    ) async throws -> (key: ApiKey, secret: Secret) {
        guard (0...resources.limits.secretOverlapMax.microseconds / 1_000_000).contains(overlapSeconds) else {
            throw Failure.invalid(.invalidDuration, field: "overlap_seconds", "must be 0 to 30 days")
        }
        let now = resources.clock.now()
        let (secret, limits) = (Self.secret(of: id, random: resources.random), resources.quotaLimits)
        let key = try await resources.store.write { transaction in
            var (stored, key) = try transaction.reading.storedAPIKey(id, managedBy: admin, now: now)
            // A caller who rotates a key gets its secret, and with it the key's rights and quotas.
            try admin?.checkMayRenew(key, limits: limits)
            try key.checkNotRevoked()
            if let owner = admin?.quotaOwnerOfItsKeys, owner.id != id { stored.setQuotaOwner(owner, of: &key) }
            key.previousSecretUntilMicros = overlapSeconds == 0 ? 0 : (now + .seconds(overlapSeconds)).microseconds
            stored.previousSecretHash = overlapSeconds == 0 ? [] : stored.secretHash
            stored.secretHash = Digest.sha256(secret)
            stored.apiKey = key
            if validateOnly { return key }
            try transaction.refusingRepeat(of: origin, now: now) {
                try transaction.put(Tables.apiKeys, TextKey(id), stored)
                try transaction.appendEvent(
                    .apiKeyRotated, tenantID: key.logTenantID(changedBy: admin), origin: origin, detail: id, now: now)
            }
            return key
        }
        return (key, Secret(secret))
    }
}

extension StoredApiKey {
    /// Ends the previous secret at `until`, or at once with 0. Its life is never extended. INVALID_EXPIRY.
    mutating func endPreviousSecret(_ key: inout ApiKey, until: Int64, now: Timestamp) throws(Failure) {
        guard until == 0 || (until > now.microseconds && until <= key.previousSecretUntilMicros) else {
            throw .invalid(
                .invalidExpiry, field: "previous_secret_until_micros",
                "must be 0, to end the old secret at once, or in the future and not after the end it has")
        }
        key.previousSecretUntilMicros = until
        if until == 0 { previousSecretHash = [] }
    }
}

extension Caller {
    /// The caller of a key that is not revoked and has this secret, as its present or its previous one.
    convenience init?(_ stored: StoredApiKey, secretHash: [UInt8], quotaOwner: QuotaHolder? = nil) {
        guard let key = stored.apiKey, key.revokedAtMicros == 0, !secretHash.isEmpty else { return nil }
        let isPrevious = !constantTimeEqual(stored.secretHash, secretHash)
        guard !isPrevious || constantTimeEqual(stored.previousSecretHash, secretHash) else { return nil }
        self.init(key, quotaOwner: quotaOwner, secretHash: secretHash, isPrevious: isPrevious)
    }

    /// API_KEY_EXPIRED.
    func checkLife(now: Timestamp) throws(Failure) {
        if let expiresAt, now >= expiresAt { throw .apiKeyExpired }
    }
}

extension ApiKey {
    /// API_KEY_REVOKED.
    func checkNotRevoked() throws(Failure) {
        guard revokedAtMicros == 0 else {
            throw Failure(.apiKeyRevoked, "This API key was revoked; make another one.")
        }
    }

    /// Whether the key is a project-admin key without an end and address limits; one such key is always left.
    var isLastingAdmin: Bool {
        role == .projectAdmin && revokedAtMicros == 0 && expiresAtMicros == 0 && allowedAddresses.isEmpty
    }
}
