public import Base
import Crypto

/// The reason why a token was not accepted.
public enum TokenError: Error, Sendable, Equatable {
    case invalid
    /// The token is well formed and in time, and names a key that is not known here.
    case unknownKey
    case expired
    /// The token is genuine, and from a time that is still to come by the clock.
    case early
}

/// Verifies ID tokens: form, type, key, algorithm, signature, issuer, audience, times. No input or output, no waiting.
///
/// The header has to be, byte for byte, that of a published key's tokens: nothing in it is read, and the key decides
/// the algorithm. A token that was verified before is remembered, so that it costs no signature check when it comes to
/// the same thread again; times and the key's retirement are checked every time. When the published keys change, all
/// tokens are verified again. May be called on any thread.
public final class IssuedTokenVerifier: Sendable {
    private let keys: PublishedKeySet
    private let issuer: Text
    private let audience: Text
    private let tokenMax: Int
    private let cache: VerifiedTokenCache

    public init(keys: PublishedKeySet, issuer: Text, audience: Text, limits: Limits, random: RandomSource) {
        self.keys = keys
        self.issuer = issuer
        self.audience = audience
        self.tokenMax = limits.tokenMax
        self.cache = VerifiedTokenCache(random: random)
    }

    /// Verifies a token. With `allowsExpired`, an expired token is accepted too: only for operations that can harm only
    /// the token's owner.
    public func verify(
        _ token: [UInt8], now: Timestamp, allowsExpired: Bool = false
    ) throws(TokenError) -> VerifiedToken {
        guard token.count <= tokenMax, let key = cache.key(of: token) else { throw .invalid }
        let keySetNumber = keys.currentNumber
        if let known = cache.find(token, key, in: keySetNumber, at: now) {
            return try checkTimes(known, now: now, allowsExpired: allowsExpired)
        }
        let keySet = keys.currentForThisThread
        guard let entry = keySet.entry(of: token, at: now) else {
            let isUnknown = namesUnknownKey(token, keySet, at: now, allowsExpired: allowsExpired)
            throw isUnknown ? TokenError.unknownKey : TokenError.invalid
        }
        guard
            let payload = Self.signedPayload(of: token, entry, signedByteCount: key.signedByteCount),
            let verified = VerifiedToken(payload: payload, keyID: entry.id, issuer: issuer, audience: audience)
        else { throw .invalid }
        _ = try checkTimes(verified, now: now, allowsExpired: allowsExpired)
        cache.insert(verified, .init(keySetNumber: keySetNumber, keyTimes: entry.times), for: token, key)
        return verified
    }

    /// Whether a signing key was revoked, not long ago.
    public func isRevoked(keyID: Text) -> Bool { keys.currentForThisThread.revokedIDs.contains(keyID) }

    /// The bytes between the header and the signature, if the signature is the key's.
    private static func signedPayload(
        of token: [UInt8], _ entry: KeySet.Entry, signedByteCount payloadEnd: Int
    ) -> [UInt8]? {
        let payloadStart = entry.tokenPrefix.count
        guard payloadEnd >= payloadStart else { return nil }
        let isSigned = token.withUnsafeBytes { token in
            let signedBytes = UnsafeRawBufferPointer(rebasing: token[..<payloadEnd])
            let signature = UnsafeRawBufferPointer(rebasing: token[(payloadEnd + 1)...])
            return Base64.url.withDecoded(signature) { entry.publicKey.verify(signature: $0, over: signedBytes) }
        }
        return isSigned == true ? Base64.url.decode(token[payloadStart..<payloadEnd]) : nil
    }

    /// Whether the token might be accepted if its key were known. The signature cannot be checked without the key. A
    /// revoked key is known: no node accepts its tokens any more.
    private func namesUnknownKey(
        _ token: [UInt8], _ keySet: KeySet, at now: Timestamp, allowsExpired: Bool
    ) -> Bool {
        guard let jwt = JWT(token, byteCountMax: tokenMax), let keyID = jwt.keyID,
            keyID.byteCount == VerificationKey.keyIDByteCount, !keySet.entries.contains(where: { $0.id == keyID }),
            !keySet.revokedIDs.contains(keyID),
            let algorithm = SigningAlgorithm(jwt.algorithm),
            token.starts(with: KeySet.Entry.tokenPrefix(keyID, algorithm)),
            let claims = VerifiedToken(payload: jwt.payload, keyID: keyID, issuer: issuer, audience: audience)
        else { return false }
        do throws(TokenError) {
            _ = try checkTimes(claims, now: now, allowsExpired: allowsExpired)
            return true
        } catch {
            return false
        }
    }

    private func checkTimes(
        _ token: VerifiedToken, now: Timestamp, allowsExpired: Bool
    ) throws(TokenError) -> VerifiedToken {
        // Our own clock stamped it, so expiry has no leeway. A step backwards of less than a minute is no forgery.
        guard allowsExpired || now < token.expiresAt else { throw .expired }
        guard token.issuedAt <= now + .seconds(60) else { throw .early }
        return token
    }
}
