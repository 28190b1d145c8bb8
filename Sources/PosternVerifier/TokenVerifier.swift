public import Base
import Crypto
import Messages
public import PosternClient
import Synchronization
import Tokens

/// Verifies tokens inside a service, without a call per token: signatures with the project's keys, revocations with the
/// feed that the server pushes.
///
/// One verifier serves a whole process and may be used from any thread. The channel's credential needs the role
/// verifier. A token that the same thread verified before costs about a microsecond.
///
/// Times are the server's, carried on by a clock that only goes forward and counts the time that the machine sleeps. A
/// wrong wall clock on this machine therefore lets nobody in and locks nobody out.
///
/// The verifier accepts some tokens that the server would refuse: those of a session that nobody used for too long, or
/// that reached an age which its tenant lowered since. Such an ID token is accepted for an hour at most, such a session
/// cookie until it expires. Tokens of deleted and disabled users are refused as revoked.
///
/// ```swift
/// let verifier = try await TokenVerifier(channel: channel)
/// let token = try await verifier.verify(idToken)
/// print(token.uid, token.signInProvider)
/// ```
public final class TokenVerifier: Sendable {
    /// The options that the verifier was made with. If they named no tenant, `tenants` is the one that the server told.
    public let options: VerifierOptions
    private let source: VerifierSource
    private let followed: FollowedRevocations
    private let tokens: IssuedTokenVerifier
    private let keys: ProjectKeys
    private let followers: [Task<Void, Never>]

    /// Fetches the keys and the first snapshot of revocations, then follows the feed until `stop` or until the verifier
    /// is dropped.
    ///
    /// Throws UNAVAILABLE while the server cannot be reached or sends nothing on the feed, CALLER_UNAUTHENTICATED,
    /// INSUFFICIENT_PERMISSION, TENANT_NOT_FOUND.
    public init(channel: Channel, options: VerifierOptions = VerifierOptions()) async throws(Failure) {
        let unnamed = VerifierSource(channel: channel, options: options)
        let project = try await unnamed.project()
        let keys = ProjectKeys(source: unnamed, floor: options.keyRefreshFloor)
        let followed = FollowedRevocations(retention: options.retention, at: .nowWithSleep)
        let first = try await unnamed.begin(followed)
        let source = unnamed.naming(tenantOf: followed)
        // After the snapshot: the keys then have the successors of those that it says are revoked.
        try await keys.refresh()
        self.options = source.options
        self.source = source
        self.followed = followed
        self.keys = keys
        self.tokens = IssuedTokenVerifier(
            keys: keys.published, issuer: project.issuer, audience: project.audience, limits: channel.options.limits,
            random: .system)
        self.followers = [
            // A revoked key has a successor. The keys are fetched soon, so that the successor's first token finds its
            // key.
            Task { await source.keepFollowing(followed, first) { keys.fetchSoon() } },
            Task { await keys.fetchWhenAsked() },
            Task { await keys.keepFresh(every: options.keyRefreshInterval) },
        ]
    }

    deinit { stop() }

    /// Stops following the feed. The verifier goes stale after `VerifierOptions.staleAfter`.
    public func stop() {
        for follower in followers { follower.cancel() }
    }

    /// How long revocations may be unknown here: the time since the feed was last heard, or since the time up to which
    /// the server itself knew everything, if that is longer.
    public var staleness: Duration { followed.heard(.nowWithSleep)?.staleness ?? .zero }

    /// Verifies a token with the keys and revocations that the verifier has, without waiting.
    ///
    /// Throws INVALID_ID_TOKEN or INVALID_SESSION_COOKIE, TOKEN_EXPIRED (metadata `cause` EXPIRED or REVOKED),
    /// TENANT_ID_MISMATCH, PROJECT_DISABLED, TENANT_NOT_FOUND, VERIFIER_STALE.
    public func verifyNow(_ token: String) throws(Failure) -> DecodedToken {
        let (verified, isStale) = try check(text(token))
        if isStale && options.whenStale != .accept { throw stale }
        return verified
    }

    /// Verifies a token as `verifyNow` does. If the token names an unknown key and all but its signature is right, the
    /// keys are fetched first; tokens that come meanwhile wait for the same fetch, for three seconds at most. While the
    /// verifier is stale and `whenStale` is `.askServer`, it asks the server.
    public func verify(_ token: String) async throws(Failure) -> DecodedToken {
        let token = try text(token)
        if namesUnknownKey(token) { await keys.learnKey(of: token) }
        let (verified, isStale) = try check(token)
        guard isStale else { return verified }
        switch options.whenStale {
        case .accept: return verified
        case .refuse: throw stale
        case .askServer:
            try await source.verify(token)
            return verified
        }
    }

    /// Whether the token might be valid if its key were known. Other text causes no fetch of the keys.
    private func namesUnknownKey(_ token: Text) -> Bool {
        if keys.isKnown(token) { return false }
        do throws(TokenError) {
            _ = try tokens.verify(token.bytes, now: now)
            return false
        } catch {
            return error == .unknownKey
        }
    }

    /// The server's time, as far as it is known.
    private var now: Timestamp { followed.heard(.nowWithSleep)?.serverTime ?? Clock.system.now() }

    /// Converts a token, which may hold anything that a stranger puts into a header.
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
            throw Self.expired(.expired)
        } catch {
            throw options.invalidToken
        }
        if case .one(let tenantID) = options.tenants, verified.tenantID != tenantID {
            throw Self.tenantMismatch(verified, accepted: TenantTitle.of(tenantID))
        }
        switch followed.refusal(of: verified) {
        case nil: break
        case .revoked: throw Self.expired(.revoked)
        case .keyRevoked: throw options.invalidToken
        case .otherTenant: throw Self.tenantMismatch(verified, accepted: "the tenant of its own key")
        case .tenantDisabled: throw Self.projectDisabled
        case .tenantDeleted: throw Self.tenantNotFound
        }
        return (DecodedToken(token: verified), (heard?.staleness ?? .zero) > options.staleAfter)
    }
}

extension TokenVerifier {
    /// The metadata `cause` of TOKEN_EXPIRED.
    private enum ExpiryCause: String {
        case expired = "EXPIRED"
        case revoked = "REVOKED"
    }

    private static func expired(_ cause: ExpiryCause) -> Failure {
        Failure(
            .tokenExpired, "The token is no longer valid; sign in again.",
            metadata: [.init("cause", cause.rawValue)])
    }

    /// The token is genuine, so its tenant may be told. `accepted`: the words for the tenant of the verifier.
    private static func tenantMismatch(_ token: VerifiedToken, accepted: String) -> Failure {
        Failure(
            .tenantIDMismatch, "The token is of \(TenantTitle.of(token.tenantID)); this verifier is for \(accepted).",
            metadata: [.init("tenant", token.tenantID.string)])
    }

    private static let projectDisabled = Failure(
        .projectDisabled, "Authentication is switched off for this tenant (disable_auth).")
    private static let tenantNotFound = Failure(.tenantNotFound, "The token's tenant was deleted.")

    /// VERIFIER_STALE. If the server said why it does not give the feed, its reason is the metadata `cause`. Waiting
    /// alone rarely helps then.
    private var stale: Failure {
        guard let refusal = followed.feedRefusal else {
            return Failure(
                .verifierStale,
                "The server was not heard of for too long to know what was revoked; try again when it is back.")
        }
        return Failure(
            .verifierStale, "The server does not tell this verifier what was revoked: \(refusal.message)",
            metadata: refusal.reason.isEmpty ? [] : [.init("cause", refusal.reason)])
    }
}

extension VerifierOptions {
    var retention: Duration { tokenKind == .idToken ? .hours(2) : .hours(14 * 24 + 1) }

    var invalidToken: Failure {
        switch tokenKind {
        case .idToken: Failure(.invalidIDToken, "The ID token is not one of this project's.")
        case .sessionCookie:
            Failure(.invalidSessionCookie, "The session cookie is not one of this project's.")
        }
    }
}
