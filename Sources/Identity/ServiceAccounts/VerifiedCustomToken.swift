public import Base
import Messages
import Rules
import Store

/// A custom token that is genuine, in time, of this tenant, and well formed. Whether it was used before is checked in
/// the transaction that uses it: `useTokenID`.
public struct VerifiedCustomToken: Sendable {
    /// The user whom the token signs in, who need not exist.
    public let uid: Text
    /// A JSON object that every ID token of the session carries; empty = none.
    public let claims: [UInt8]
    /// The hash of issuer and `jti`; nil: the token may be used until it expires.
    let useKey: HashKey?
    let expiresAt: Timestamp
    let signer: CustomTokenSigner
}

/// The service account that signed a custom token, and its key.
struct CustomTokenSigner: Sendable, Equatable {
    let accountID: Text
    let keyID: Text
}

/// Why a token was refused, as the metadata `cause` of INVALID_CUSTOM_TOKEN.
enum CustomTokenFault: String {
    case malformed = "MALFORMED"
    /// No account, not enabled, not for custom tokens; no such key, revoked; a wrong signature.
    case notAuthentic = "NOT_AUTHENTIC"
    case expired = "EXPIRED"
    /// The token is not yet valid, or valid for longer than an hour.
    case times = "TIMES"
    case used = "USED"
}

extension Failure {
    static func invalidCustomToken(_ fault: CustomTokenFault) -> Failure {
        let what =
            switch fault {
            case .malformed: "is no JWT as a service account writes it"
            case .notAuthentic: "is not signed by a service account of this project that may"
            case .expired: "has expired"
            case .times: "is not valid yet, or for longer than an hour"
            case .used: "was used before"
            }
        return Failure(
            .invalidCustomToken, "The custom token \(what); ask the back end for a new one.",
            metadata: [Entry("cause", fault.rawValue)])
    }

    static func credentialMismatch(_ what: String) -> Failure {
        Failure(.credentialMismatch, "The custom token \(what).")
    }
}

extension ReadTransaction {
    /// Whether the service account may still sign custom tokens for the tenant, and with this key. Everything that
    /// rests on a custom token asks again in its own transaction: the account may have been disabled, deleted or bound
    /// to another tenant meanwhile, and the key revoked.
    func maySign(_ signer: CustomTokenSigner, tenantID: Text, now: Timestamp) throws -> Bool {
        guard let account = try liveServiceAccount(signer.accountID), !account.disabled, account.customTokens,
            account.scope?.contains(tenantID: tenantID) == true,
            let key = try get(Tables.serviceAccountKeys, ServiceAccountKeyKey(signer.accountID, signer.keyID))?.key
        else { return false }
        return key.isLive(at: now)
    }
}

extension WriteTransaction {
    /// Uses up a custom token's id, in the transaction of the change that the token allows: the second use is refused,
    /// and so is a signer that may not sign for the tenant any more. INVALID_CUSTOM_TOKEN.
    func useTokenID(of token: VerifiedCustomToken, tenantID: Text, now: Timestamp) throws {
        guard try reading.maySign(token.signer, tenantID: tenantID, now: now) else {
            throw Failure.invalidCustomToken(.notAuthentic)
        }
        guard let useKey = token.useKey else { return }
        guard try !reading.isSpent(.customToken, until: token.expiresAt),
            try recordUse(of: useKey, in: Tables.usedTokenIDs, until: token.expiresAt)
        else { throw Failure.invalidCustomToken(.used) }
    }
}
