import Base
import Messages
import Tokens

/// The revocations of a feed, as far as they concern tokens that have not expired. A value: no clock, no input or
/// output.
///
/// Entries are forgotten a whole generation at a time. A look-up takes two steps, and at most twice the entries of one
/// retention are kept.
struct RevocationState: Sendable {
    private struct Generation: Sendable {
        var begunAt: Timestamp
        var users: [User: Int64] = [:]
        var sessions: Set<SessionID> = []
    }

    private struct User: Hashable {
        let tenantID: Text
        let uid: Text
    }

    /// 16 bytes that hash fast.
    private struct SessionID: Hashable {
        let high: UInt64
        let low: UInt64

        init?(_ bytes: [UInt8]) {
            guard bytes.count == 16 else { return nil }
            (high, low) = bytes.withUnsafeBytes {
                ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            }
        }
    }

    /// The reason why a token is refused.
    enum Refusal: Equatable {
        case revoked
        /// Nothing is known of the tenant: the credential is not for it.
        case otherTenant
        case tenantDisabled
        case tenantDeleted
        /// Whoever has the key could have made the token.
        case keyRevoked
    }

    private let retention: Duration
    /// The feed's tenant. Nil: the feed is about all tenants.
    let onlyTenantID: Text?
    private var current: Generation
    private var previous: Generation?
    private var disabledTenants: Set<Text> = []
    private var deletedTenants: Set<Text> = []
    /// The ids of revoked keys. They are never forgotten, because tokens of such a key can be made at any time.
    private var revokedKeys: Set<Text> = []

    /// `retention` is the life of a token and a margin. `onlyTenantID` is the feed's tenant; nil: the feed is about all
    /// tenants.
    init(retention: Duration, onlyTenantID: Text? = nil, now: Timestamp) {
        self.retention = retention
        self.onlyTenantID = onlyTenantID
        self.current = Generation(begunAt: now)
    }

    var entryCount: Int {
        [current, previous].compactMap { $0 }.reduce(0) { $0 + $1.users.count + $1.sessions.count }
    }

    /// Applies a revocation. `now` is the time of the message that brought it.
    mutating func apply(_ revocation: Revocation, now: Timestamp) {
        if now - current.begunAt > retention {
            previous = current
            current = Generation(begunAt: now)
        }
        switch revocation.kind {
        case .user:
            let user = User(tenantID: revocation.tenantID, uid: revocation.uid)
            current.users[user] = max(current.users[user] ?? .min, revocation.validAfterMicros)
        case .session:
            guard let bytes = Hex.decode(revocation.sessionID.bytes), let id = SessionID(bytes) else { return }
            current.sessions.insert(id)
        case .tenantDisabled: disabledTenants.insert(revocation.tenantID)
        case .tenantEnabled: disabledTenants.remove(revocation.tenantID)
        case .tenantDeleted: deletedTenants.insert(revocation.tenantID)
        case .signingKey: revokedKeys.insert(revocation.keyID)
        // A kind that only a newer server knows: this version cannot refuse anything by it.
        case .unspecified: break
        }
    }

    /// The reason to refuse a token. Nil: the feed has none.
    func refusal(of token: VerifiedToken) -> Refusal? {
        if !revokedKeys.isEmpty, revokedKeys.contains(token.keyID) { return .keyRevoked }
        if let onlyTenantID, token.tenantID != onlyTenantID { return .otherTenant }
        if deletedTenants.contains(token.tenantID) { return .tenantDeleted }
        if disabledTenants.contains(token.tenantID) { return .tenantDisabled }
        if isRevoked(token, by: current) { return .revoked }
        if let previous, isRevoked(token, by: previous) { return .revoked }
        return nil
    }

    private func isRevoked(_ token: VerifiedToken, by generation: Generation) -> Bool {
        if !generation.sessions.isEmpty, let id = SessionID(token.sessionID), generation.sessions.contains(id) {
            return true
        }
        guard !generation.users.isEmpty,
            let validAfter = generation.users[User(tenantID: token.tenantID, uid: token.uid)]
        else { return false }
        return token.generation < validAfter
    }
}
