public import Base
public import Messages
import Reactor
public import Rules
public import Signing
public import Tokens

/// Tokens whose ID token may be signed already.
struct BegunTokens: Sendable {
    let grant: SessionGrant
    fileprivate let settings: TenantSettings
    fileprivate let now: Timestamp
    fileprivate let deadline: Instant
    /// Nil if nothing was begun.
    fileprivate let idToken: (claims: IDTokenClaims, signing: WorkerPool.BegunWork<Text>)?
}

/// Makes the tokens of a session: the ID token, signed by the `TokenSigner`, and the refresh token.
public final class TokenIssuer: Sendable {
    private let signer: TokenSigner
    private let refreshTokens: RefreshTokenCodec
    private let issuer: Text
    private let audience: Text

    public init(signer: TokenSigner, refreshTokens: RefreshTokenCodec, issuer: Text, audience: Text) {
        self.signer = signer
        self.refreshTokens = refreshTokens
        self.issuer = issuer
        self.audience = audience
    }

    func tokens(
        for grant: SessionGrant, settings: TenantSettings, now: Timestamp, deadline: Instant
    ) async throws -> TokenPair {
        let claims = claims(of: grant, settings: settings, now: now)
        return tokens(for: grant, claims, idToken: try await signer.sign(claims, deadline: deadline))
    }

    /// Begins to make the tokens of a session whose transaction is not committed yet: the signature takes as long as
    /// the commit. From any thread. `trace`: that of the call.
    func begin(
        for grant: SessionGrant, settings: TenantSettings, now: Timestamp, deadline: Instant, trace: CallTrace?
    ) -> BegunTokens {
        var idToken: (IDTokenClaims, WorkerPool.BegunWork<Text>)?
        if signer.signsOnPool(at: now) {
            let claims = claims(of: grant, settings: settings, now: now)
            idToken = signer.begin(claims, deadline: deadline, trace: trace).map { (claims, $0) }
        }
        return BegunTokens(grant: grant, settings: settings, now: now, deadline: deadline, idToken: idToken)
    }

    /// The tokens that were begun. Only for a session whose transaction is committed.
    func tokens(_ begun: BegunTokens) async throws -> TokenPair {
        guard let (claims, signing) = begun.idToken else {
            return try await tokens(
                for: begun.grant, settings: begun.settings, now: begun.now, deadline: begun.deadline)
        }
        return tokens(for: begun.grant, claims, idToken: try await signing.value())
    }

    private func tokens(for grant: SessionGrant, _ claims: IDTokenClaims, idToken: Text) -> TokenPair {
        let refreshToken = RefreshToken(sessionID: grant.sessionID, counter: grant.session.counter)
        return TokenPair(
            idToken: idToken, refreshToken: grant.givesRefreshToken ? refreshTokens.encode(refreshToken) : .empty,
            idTokenExpiresAtMicros: Timestamp(seconds: claims.expiresAt.seconds).microseconds)
    }

    private func claims(of grant: SessionGrant, settings: TenantSettings, now: Timestamp) -> IDTokenClaims {
        claims(
            of: grant.user, grant.session, grant.sessionID, settings: settings, now: now,
            lifetime: TokenSigner.tokenLifetime)
    }

    /// Issues a token with the claims of an ID token, valid for `lifetime`.
    public func token(
        for user: User, session: StoredSession, sessionID: [UInt8], settings: TenantSettings, now: Timestamp,
        lifetime: Duration, deadline: Instant
    ) async throws -> (token: Text, expiresAt: Timestamp) {
        let claims = claims(of: user, session, sessionID, settings: settings, now: now, lifetime: lifetime)
        return (try await signer.sign(claims, deadline: deadline), Timestamp(seconds: claims.expiresAt.seconds))
    }

    private func claims(
        of user: User, _ session: StoredSession, _ sessionID: [UInt8], settings: TenantSettings, now: Timestamp,
        lifetime: Duration
    ) -> IDTokenClaims {
        var claims = IDTokenClaims()
        claims.issuer = issuer
        claims.audience = audience
        claims.uid = user.uid
        claims.tenantID = user.tenantID
        claims.issuedAt = now
        claims.expiresAt = now + lifetime
        claims.authTime = Timestamp(microseconds: session.authTimeMicros)
        claims.sessionID = sessionID
        claims.generation = user.tokensValidAfterMicros
        claims.email = user.email
        claims.isEmailVerified = user.emailVerified
        claims.displayName = user.displayName
        claims.photoURL = user.photoURL
        claims.phoneNumber = user.phoneNumber
        claims.signInProvider = session.signInProvider
        claims.secondFactor = session.secondFactor
        claims.secondFactorID = session.secondFactorID
        claims.identities = Self.identities(of: user)
        claims.customClaims = user.customClaimsJSON
        claims.sessionClaims = session.claimsJSON
        claims.isSynthetic = settings.isSynthetic
        return claims
    }

    /// The email, and each provider's identifiers; "password" is the email again and is left out.
    private static func identities(of user: User) -> [IDTokenClaims.Identity] {
        var identities: [IDTokenClaims.Identity] = []
        if !user.email.isEmpty {
            identities.append(.init(providerID: IDTokenClaims.emailIdentity, identifiers: [user.email]))
        }
        for provider in user.providers where provider.providerID != ProviderInfo.password {
            identities.append(.init(providerID: provider.providerID, identifiers: [provider.rawID]))
        }
        return identities
    }
}
