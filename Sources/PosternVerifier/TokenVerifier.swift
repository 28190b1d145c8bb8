public import Base
import Crypto
import Messages
public import PosternClient
import Synchronization
import Tokens

/// Verifies tokens inside a service, without a call per request: signature and times by the project's keys, revocations
/// by the feed that the server pushes. Any thread.
///
/// A token that was seen before costs a keyed hash of its bytes and a few look-ups, about a microsecond. Times are the
/// server's, carried on by a clock that only goes forward, also while the machine sleeps, so that a wrong clock here
/// lets nobody in and locks nobody out. The credential of the channel needs the role verifier.
///
/// What the server would refuse and this does not: a session that ended by not being used, or by an age that its tenant
/// lowered meanwhile. Its ID tokens live an hour at most, its cookies as long as they say. Users who were deleted or
/// disabled are refused as revoked.
public final class TokenVerifier: Sendable {
    public let options: VerifierOptions
    private let source: VerifierSource
    private let followed: FollowedRevocations
    private let tokens: IssuedTokenVerifier
    private let keys: ProjectKeys
    private let followers: [Task<Void, Never>]

    /// Fetches the keys and the first snapshot of revocations, then follows the feed until this is dropped or `stop`.
    ///
    /// Throws what the calls throw: UNAVAILABLE while there is no server, CALLER_UNAUTHENTICATED,
    /// INSUFFICIENT_PERMISSION, TENANT_NOT_FOUND.
    public init(channel: Channel, options: VerifierOptions = VerifierOptions()) async throws(Failure) {
        let source = VerifierSource(channel: channel, options: options)
        let project = try await source.project()
        let keys = ProjectKeys(source: source, floor: options.keyRefreshFloor)
        try await keys.refresh()
        let followed = FollowedRevocations(retention: options.retention, at: .nowWithSleep)
        let first = try await source.follow(followed)
        self.options = options
        self.source = source
        self.followed = followed
        self.keys = keys
        self.tokens = IssuedTokenVerifier(
            keys: keys.published, issuer: project.issuer, audience: project.audience, limits: channel.options.limits,
            random: .system)
        self.followers = [
            Task { await source.keepFollowing(followed, first, onKeyRevoked: { try? await keys.refresh() }) },
            Task { await keys.keepFresh(every: options.keyRefreshInterval) },
        ]
    }

    deinit { stop() }

    /// Stops following: from then on the verifier grows stale.
    public func stop() {
        for follower in followers { follower.cancel() }
    }

    /// How long the feed was not heard of: what was revoked since may not be known here.
    public var staleness: Duration { followed.heard(.nowWithSleep)?.staleness ?? .zero }

    /// Verifies with what is known here. INVALID_ID_TOKEN or INVALID_SESSION_COOKIE, TOKEN_EXPIRED (metadata `cause`
    /// EXPIRED or REVOKED), TENANT_ID_MISMATCH, PROJECT_DISABLED, TENANT_NOT_FOUND, VERIFIER_STALE.
    public func verifyNow(_ token: String) throws(Failure) -> DecodedToken {
        let (verified, isStale) = try check(text(token))
        if isStale && options.whenStale != .accept { throw Self.stale }
        return verified
    }

    /// As `verifyNow`; fetches the keys first when the token's is not known, and asks the server while this is stale
    /// and the policy says so.
    public func verify(_ token: String) async throws(Failure) -> DecodedToken {
        let token = try text(token)
        if keys.mayKnowMore(than: token) { try? await keys.refresh() }
        let (verified, isStale) = try check(token)
        guard isStale else { return verified }
        switch options.whenStale {
        case .accept: return verified
        case .refuse: throw Self.stale
        case .askServer:
            try await source.verify(token)
            return verified
        }
    }

    /// Whatever a stranger sent may stand in a header.
    private func text(_ token: String) throws(Failure) -> Text {
        guard let text = Text(validating: [UInt8](token.utf8)) else { throw options.invalidToken }
        return text
    }

    private func check(_ token: Text) throws(Failure) -> (DecodedToken, isStale: Bool) {
        let heard = followed.heard(.nowWithSleep)
        let now = heard?.serverTime ?? Clock.system.now()
        let verified: VerifiedToken
        do throws(TokenError) {
            verified = try tokens.verify(token.bytes, now: now)
        } catch .expired {
            throw Self.expired("EXPIRED")
        } catch {
            throw options.invalidToken
        }
        if case .one(let tenantID) = options.tenants, verified.tenantID != tenantID { throw Self.tenantMismatch }
        switch followed.refusal(of: verified) {
        case nil: break
        case .revoked: throw Self.expired("REVOKED")
        case .keyRevoked: throw options.invalidToken
        case .otherTenant: throw Self.tenantMismatch
        case .tenantDisabled: throw Self.projectDisabled
        case .tenantDeleted: throw Self.tenantNotFound
        }
        return (DecodedToken(token: verified), (heard?.staleness ?? .zero) > options.staleAfter)
    }
}

extension TokenVerifier {
    private static func expired(_ cause: String) -> Failure {
        Failure(
            .unauthenticated, "TOKEN_EXPIRED", "The token is no longer valid; sign in again.",
            metadata: [.init("cause", cause)])
    }

    private static let tenantMismatch = Failure(
        .invalidArgument, "TENANT_ID_MISMATCH", "The token belongs to another tenant than this verifier is for.")
    private static let projectDisabled = Failure(
        .permissionDenied, "PROJECT_DISABLED", "Authentication is switched off for this tenant (disable_auth).")
    private static let tenantNotFound = Failure(.notFound, "TENANT_NOT_FOUND", "The token's tenant was deleted.")
    private static let stale = Failure(
        .unavailable, "VERIFIER_STALE",
        "The server was not heard of for too long to know what was revoked; try again when it is back.")
}

extension VerifierOptions {
    var retention: Duration { tokenKind == .idToken ? .hours(2) : .hours(14 * 24 + 1) }

    var invalidToken: Failure {
        switch tokenKind {
        case .idToken: Failure(.unauthenticated, "INVALID_ID_TOKEN", "The ID token is not one of this project's.")
        case .sessionCookie:
            Failure(.unauthenticated, "INVALID_SESSION_COOKIE", "The session cookie is not one of this project's.")
        }
    }
}
