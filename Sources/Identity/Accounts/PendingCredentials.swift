public import Base
public import Crypto
import Messages
public import Rules
import Store

/// Pending tokens: each seals an identity that was proved and could not be used yet, for one tenant and a short time.
///
/// A token does not get around a rule: its identity is decided on again when the token comes back, and the token is
/// void when its provider was changed meanwhile (`IdentityProviders.stillProved`). A proof counts once: when one of its
/// tokens has signed somebody in or was linked, all its tokens are void. The new token after a refusal ends when the
/// refused one would have: a refusal does not extend a proof. Any thread.
public struct PendingCredentials: Sendable {
    private let seal: ProofSeal<SealedPendingCredential>
    private let random: RandomSource

    /// `epoch` is the store's.
    public init(sealing: SealingKey, random: RandomSource, epoch: [UInt8]) {
        self.seal = ProofSeal(sealing: sealing, random: random, epoch: epoch)
        self.random = random
    }

    public func token(for identity: FederatedIdentity, tenantID: Text, now: Timestamp) throws -> Text {
        try seal.token(
            SealedPendingCredential(
                tenantID: tenantID, providerID: identity.providerID, rawID: identity.rawID, email: identity.email,
                emailVerifiedByProvider: identity.isEmailVerifiedByProvider, emailTrusted: identity.isEmailTrusted,
                displayName: identity.displayName, photoURL: identity.photoURL,
                expiresAtMicros: (identity.provedUntil ?? now + SealedPendingCredential.lifetime).microseconds,
                providerUpdatedAtMicros: identity.providerUpdatedAt.microseconds,
                proofID: identity.proofID.isEmpty ? random.bytes(16) : identity.proofID, issuer: identity.issuer))
    }

    /// The identity in a pending token of this tenant. INVALID_PENDING_TOKEN.
    public func identity(in token: Text, tenantID: Text, now: Timestamp) throws(Failure) -> FederatedIdentity {
        guard let content = seal.content(of: token.bytes, tenantID: tenantID, now: now) else {
            throw .invalidPendingToken
        }
        var identity = FederatedIdentity(
            providerID: content.providerID, rawID: content.rawID, issuer: content.issuer, email: content.email,
            isEmailVerifiedByProvider: content.emailVerifiedByProvider, isEmailTrusted: content.emailTrusted,
            displayName: content.displayName, photoURL: content.photoURL)
        identity.providerUpdatedAt = Timestamp(microseconds: content.providerUpdatedAtMicros)
        identity.provedUntil = Timestamp(microseconds: content.expiresAtMicros)
        identity.proofID = content.proofID
        return identity
    }
}

extension SealedPendingCredential: SealedProof {
    static var kind: String { "pending credential" }
    static var lifetime: Duration { .minutes(10) }
}

extension WriteTransaction {
    /// Uses up the proof that came in a pending token, in the transaction of the change that it allows; nothing happens
    /// for an identity that was proved just now. INVALID_PENDING_TOKEN when the proof was used before.
    func useProof(of identity: FederatedIdentity, tenantID: Text) throws {
        guard let provedUntil = identity.provedUntil else { return }
        // Tokens from before there were proof ids: the identity serves as the name.
        let identifier = identity.rawID.bytes + [0] + identity.providerID.bytes
        let name = identity.proofID.isEmpty ? identifier : identity.proofID
        let key = HashKey(Digest.sha256(tenantID.bytes + [0] + name))
        guard try !reading.isSpent(.pendingToken, until: provedUntil),
            try recordUse(of: key, in: Tables.usedProofs, until: provedUntil)
        else { throw Failure.invalidPendingToken }
    }
}

extension Failure {
    static let invalidPendingToken = Failure.invalid(
        .invalidPendingToken, field: "credential.pending_token",
        "is none of this tenant's, used, older than 10 minutes or than the provider's configuration; sign in at the "
            + "provider again")
}
