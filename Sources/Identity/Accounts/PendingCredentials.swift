public import Base
public import Crypto
import Messages

/// Pending tokens: an identity that was proved and could not be used yet, sealed, for its tenant and a short time.
///
/// A token is no way around a rule: what it carries is decided about again when it comes back, and it is void when its
/// provider was changed meanwhile (`IdentityProviders.requireUnchanged`). The token that a refusal
/// of it brings ends when it would have: a proof does not get younger by being used. Any thread.
public struct PendingCredentials: Sendable {
    /// How long a user has to sign in elsewhere and come back.
    public static let lifetime = Duration.seconds(600)

    private let sealing: SealingKey
    private let random: RandomSource

    public init(sealing: SealingKey, random: RandomSource) {
        self.sealing = sealing
        self.random = random
    }

    public func token(for identity: FederatedIdentity, tenantID: Text, now: Timestamp) -> Text {
        let content = SealedPendingCredential(
            tenantID: tenantID, providerID: identity.providerID, rawID: identity.rawID, email: identity.email,
            emailVerifiedByProvider: identity.isEmailVerifiedByProvider, emailTrusted: identity.isEmailTrusted,
            displayName: identity.displayName, photoURL: identity.photoURL,
            expiresAtMicros: (identity.provedUntil ?? now + Self.lifetime).microseconds,
            providerUpdatedAtMicros: identity.providerUpdatedAt.microseconds)
        let sealed = sealing.seal(Secret(content.encoded()), context: Self.context(tenantID), random: random)
        return Text(unchecked: Base64.url.encode(sealed))
    }

    /// The identity in a pending token of this tenant. INVALID_PENDING_TOKEN.
    public func identity(in token: Text, tenantID: Text, now: Timestamp) throws(Failure) -> FederatedIdentity {
        guard let sealed = Base64.url.decode(token.bytes),
            let opened = try? sealing.open(sealed, context: Self.context(tenantID)),
            let content = try? opened.withBytes({ try SealedPendingCredential(decoding: $0) }),
            content.tenantID == tenantID, now < Timestamp(microseconds: content.expiresAtMicros)
        else { throw .invalidPendingToken }
        var identity = FederatedIdentity(
            providerID: content.providerID, rawID: content.rawID, email: content.email,
            isEmailVerifiedByProvider: content.emailVerifiedByProvider, isEmailTrusted: content.emailTrusted,
            displayName: content.displayName, photoURL: content.photoURL)
        identity.providerUpdatedAt = Timestamp(microseconds: content.providerUpdatedAtMicros)
        identity.provedUntil = Timestamp(microseconds: content.expiresAtMicros)
        return identity
    }

    private static func context(_ tenantID: Text) -> [UInt8] {
        [UInt8]("pending credential".utf8) + [0] + tenantID.bytes
    }
}

extension Failure {
    static let invalidPendingToken = Failure.invalid(
        "INVALID_PENDING_TOKEN", field: "credential.pending_token",
        "is none of this tenant's, older than 10 minutes or older than the provider's configuration; sign in at the "
            + "provider again")
}
