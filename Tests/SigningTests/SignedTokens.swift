import Base
import Messages
import Reactor
import Signing
import Store
import Synchronization
import Tokens

/// The events of changes of the keys, as a signer tells them.
final class KeyEvents: Sendable {
    private let all = Mutex<[(kind: EventKind, keyID: Text)]>([])

    var record: TokenSigner.KeyEvent {
        { [self] _, kind, id in all.withLock { $0.append((kind, id)) } }
    }
    var list: [String] { all.withLock { $0.map { "\($0.kind) \($0.keyID)" } } }
    var kinds: [EventKind] { all.withLock { $0.map(\.kind) } }
}

/// The claims of a token that is made `now`.
func idTokenClaims(at now: Timestamp) -> IDTokenClaims {
    var claims = IDTokenClaims()
    claims.issuer = "https://issuer.test/p"
    claims.audience = "p"
    claims.uid = "u1"
    claims.issuedAt = now
    claims.expiresAt = claims.issuedAt + TokenSigner.tokenLifetime
    claims.sessionID = [UInt8](repeating: 1, count: 16)
    claims.signInProvider = "password"
    return claims
}

/// Closing may block a test's thread for a moment.
func end(_ loop: EventLoop, _ pool: WorkerPool, _ store: Store) {
    loop.stop()
    loop.join()
    pool.close()
    store.close()
}
