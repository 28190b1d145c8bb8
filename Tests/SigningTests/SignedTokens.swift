import Base
import Crypto
import Messages
import Reactor
import Signing
import Store
import Synchronization
import TestSupport
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

/// Runs `body` with a fresh signer over the store in `directory`, whose pool has one worker.
func withSigner<Result>(
    at directory: String, sealing: SealingKey, clock: Clock, _ body: (TokenSigner, WorkerPool) async throws -> Result
) async throws -> Result {
    let loop = EventLoop(name: "signer")
    loop.start()
    let pool = WorkerPool(name: "sign", workers: 1, queueMax: 64, queueMaxPerTenant: 64)
    let store = try openTestStore(at: directory, tables: SigningTables.all)
    defer { end(loop, pool, store) }
    let signer = TokenSigner(
        use: .idToken, store: store, sealing: sealing, pool: pool, loop: loop, clock: clock, random: .system)
    return try await body(signer, pool)
}

/// Closing may block a test's thread for a moment.
func end(_ loop: EventLoop, _ pool: WorkerPool, _ store: Store) {
    loop.stop()
    loop.join()
    pool.close()
    store.close()
}
