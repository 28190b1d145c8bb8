public import Base
import JSON
import Messages
public import Rules
import Store
import Tokens

extension CustomTokens {
    /// A custom token signed by the built-in service account, good for one use. INVALID_UID, CLAIMS_TOO_LARGE,
    /// INVALID_CLAIMS, FORBIDDEN_CLAIM, INVALID_DURATION; ALREADY_DONE for a repeated request. Empty with
    /// `validateOnly`.
    public func make(
        uid: Text, claims: [UInt8], lifetimeSeconds: Int64, settings: TenantSettings, validateOnly: Bool,
        origin: Origin
    ) async throws -> (token: Secret, expiresAt: Timestamp) {
        try Values.checkUID(uid, limits: resources.limits)
        try Values.checkCustomClaims(claims, field: "claims_json", limits: resources.limits)
        let lifetimeMax = ServiceAccountJWT.lifetimeMax
        guard (0...lifetimeMax.components.seconds).contains(lifetimeSeconds) else {
            throw Failure.invalid(
                .invalidDuration, field: "lifetime_seconds", "must be 0 to \(lifetimeMax.components.seconds)")
        }
        let now = resources.clock.now()
        let issuedAt = Timestamp(seconds: now.seconds)
        let expiresAt = issuedAt + (lifetimeSeconds == 0 ? lifetimeMax : .seconds(lifetimeSeconds))
        if validateOnly { return (.empty, expiresAt) }
        let key = try await builtIn.signingKey()
        try await resources.store.write { transaction in
            try transaction.refusingRepeat(of: origin, now: now) {
                try transaction.reading.requireLiveTenant(settings.tenantID)
                try transaction.appendEvent(
                    .customTokenCreated, tenantID: settings.tenantID, uid: uid, origin: origin, now: now)
            }
        }
        var json = JSONWriter()
        json.beginObject()
        json.member("iss", text: builtIn.email)
        json.member("sub", text: builtIn.email)
        json.member("aud", text: ownAudience)
        json.member("iat", integer: issuedAt.seconds)
        json.member("exp", integer: expiresAt.seconds)
        json.member("jti", text: resources.random.alphanumeric(22))
        json.member("uid", text: uid)
        if !settings.tenantID.isEmpty { json.member("tenant_id", text: settings.tenantID) }
        if !claims.isEmpty {
            json.name("claims")
            json.value(try JSONValue(parsing: claims))
        }
        json.endObject()
        return (Secret(ServiceAccountJWT.sign(json.bytes, with: key)), expiresAt)
    }
}
