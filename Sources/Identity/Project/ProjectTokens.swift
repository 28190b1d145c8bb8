public import Base
import Crypto
import Messages
import Reactor
import Rules
import Signing
import Store
public import Tokens

/// The tokens of the project: their signers, checks and issuers.
public struct ProjectTokens: Sendable {
    public let signingKeys: SigningKeys
    /// Checks ID tokens.
    public let check: TokenCheck
    public let issuer: TokenIssuer
    /// Checks session cookies. Cookies have keys and an issuer of their own: a cookie and an ID token are never taken
    /// for each other.
    public let cookieCheck: TokenCheck
    public let cookieIssuer: TokenIssuer
    public let refreshTokens: RefreshTokenCodec
    /// Names the store in the cursors of its revocations.
    public let revocationFeedID: Text

    init(
        _ configuration: Project.Configuration, resources: Resources, masterKey: MasterKey, epoch: [UInt8],
        pool: WorkerPool, loop: EventLoop
    ) {
        func signer(_ use: TokenUse) -> TokenSigner {
            TokenSigner(
                use: use, store: resources.store, sealing: masterKey.sealing, pool: pool, loop: loop,
                clock: resources.clock, random: resources.random,
                rotation: SigningKeyRotation(period: configuration.signingKeyPeriod), limits: resources.limits)
        }
        let marks = RowMarks(
            "live tokens", of: [Tables.users.declaration, Tables.sessions.declaration], in: resources.store)
        func check(_ signer: TokenSigner, issuer: Text, invalid: Failure) -> TokenCheck {
            let verifier = IssuedTokenVerifier(
                keys: signer.published, issuer: issuer, audience: configuration.projectID, limits: resources.limits,
                random: resources.random)
            return TokenCheck(verifier: verifier, marks: marks, clock: resources.clock, invalid: invalid)
        }
        // A restored store has sessions that had ended, and older counters of live sessions: refresh tokens from before
        // the restore are void in it.
        let refreshKey = masterKey.hmac(
            epoch.isEmpty ? "refresh token" : "refresh token/\(Hex.encode(epoch))")
        let refreshKeyID = Array(refreshKey.tag(of: Array("id".utf8)).prefix(4))
        let codec = RefreshTokenCodec(key: refreshKey, keyID: refreshKeyID)
        let (idTokens, cookies) = (signer(.idToken), signer(.sessionCookie))
        self.refreshTokens = codec
        self.revocationFeedID = Hex.encode(refreshKeyID)
        self.signingKeys = SigningKeys(idTokens: idTokens, sessionCookies: cookies, resources: resources)
        self.check = check(idTokens, issuer: configuration.issuer, invalid: .invalidIDToken)
        self.cookieCheck = check(cookies, issuer: configuration.cookieIssuer, invalid: .invalidSessionCookie)
        self.issuer = TokenIssuer(
            signer: idTokens, refreshTokens: codec, issuer: configuration.issuer, audience: configuration.projectID)
        self.cookieIssuer = TokenIssuer(
            signer: cookies, refreshTokens: codec, issuer: configuration.cookieIssuer,
            audience: configuration.projectID)
    }
}
