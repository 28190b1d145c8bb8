public import Base
import Crypto
import JSON
import Messages
public import Rules
import Store
import Tokens

/// Custom tokens: JWTs by which a back end signs in a user whom it knows. Verifies tokens that any service account of
/// the project signed, and makes tokens with the built-in account.
public final class CustomTokens: Sendable {
    /// The `aud` that every Admin SDK writes, for any project.
    static let sdkAudience: Text =
        "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"

    let resources: Resources
    let builtIn: BuiltInServiceAccount
    /// Our own `aud`, which names the project.
    let ownAudience: Text
    private let signers: ServiceAccountSigners

    init(resources: Resources, signers: ServiceAccountSigners, builtIn: BuiltInServiceAccount, issuer: Text) {
        self.resources = resources
        self.signers = signers
        self.builtIn = builtIn
        self.ownAudience = Text(unchecked: issuer.bytes + [UInt8]("/custom-token".utf8))
    }

    /// Checks in order: MISSING_CUSTOM_TOKEN, INVALID_CUSTOM_TOKEN (form, signer, signature, times),
    /// CREDENTIAL_MISMATCH (audience, the signer's scope), TENANT_ID_MISMATCH, MISSING_IDENTIFIER, INVALID_UID,
    /// CLAIMS_TOO_LARGE, INVALID_CLAIMS, FORBIDDEN_CLAIM. The failure for a token that is not authentic says only that,
    /// and nothing about its contents.
    public func verify(_ token: Secret, settings: TenantSettings, now: Timestamp) throws -> VerifiedCustomToken {
        guard !token.isEmpty else { throw Failure.invalid(.missingCustomToken, field: "token", "is required") }
        guard let jwt = ServiceAccountJWT(token.withBytes { [UInt8]($0) }, limits: resources.limits),
            jwt.type == nil || jwt.type == "JWT"
        else { throw Failure.invalidCustomToken(.malformed) }
        let signer = try resources.store.read { try signers.signer(of: jwt, now: now, in: $0) }
        guard let signer, signer.account.customTokens else { throw Failure.invalidCustomToken(.notAuthentic) }
        do throws(TokenError) {
            try jwt.checkTimes(now: now)
        } catch {
            throw Failure.invalidCustomToken(error == .expired ? .expired : .times)
        }
        guard jwt.audience == Self.sdkAudience || jwt.audience == ownAudience else {
            throw Failure.credentialMismatch("is for another project or purpose (aud)")
        }
        guard signer.account.scope?.contains(tenantID: settings.tenantID) == true else {
            throw Failure.credentialMismatch("is signed by a service account that is bound to another tenant")
        }
        return VerifiedCustomToken(
            uid: try uid(in: jwt.claims, settings: settings), claims: try claims(in: jwt.claims),
            useKey: try useKey(of: jwt), expiresAt: jwt.expiresAt,
            signer: CustomTokenSigner(accountID: signer.account.serviceAccountID, keyID: signer.key.keyID))
    }

    /// The claims' `tenant_id` must be the request's tenant; for the default pool it is absent or "".
    private func uid(in claims: JSONValue, settings: TenantSettings) throws -> Text {
        guard let tenantID = (claims["tenant_id"] ?? "").text else { throw Failure.invalidCustomToken(.malformed) }
        guard tenantID == settings.tenantID else {
            // The signature was checked, but the signer may have written anything into the claim.
            guard tenantID.isEmpty || Values.isPlainID(tenantID) else {
                throw Failure(.tenantIDMismatch, "The claim tenant_id is not the id of a tenant.")
            }
            throw Failure.tenantMismatch(tokenOf: tenantID, request: settings.tenantID)
        }
        // The oldest SDKs wrote "user_id".
        guard let uid = (claims["uid"] ?? claims["user_id"])?.text, !uid.isEmpty else {
            throw Failure.invalid(
                .missingIdentifier, field: "token", "the claim uid must be a text that is not empty")
        }
        try Values.checkUID(uid, limits: resources.limits)
        return uid
    }

    private func claims(in claims: JSONValue) throws -> [UInt8] {
        guard let wanted = claims["claims"] else { return [] }
        let json = wanted.serialized()
        try Values.checkCustomClaims(json, field: "claims", limits: resources.limits)
        return wanted.object?.isEmpty == true ? [] : json
    }

    private func useKey(of jwt: ServiceAccountJWT) throws -> HashKey? {
        guard let id = jwt.claims["jti"] else { return nil }
        guard let id = id.text, !id.isEmpty else { throw Failure.invalidCustomToken(.malformed) }
        return HashKey(Digest.sha256(jwt.email.bytes + [0] + id.bytes))
    }
}
