import Base
import Crypto
import Messages
import Reactor
import Synchronization
import TestSupport
import Testing
import Tokens

@testable import Signing

/// Signatures of RS256 wait for a thread, each tenant's in a line of its own.
@Suite struct SigningTurnsTests {
    private final class SigningOrder: Sendable {
        let tenantIDs = Mutex<[Text]>([])
    }

    /// A tenant whose users have many tokens signed holds up only its own: the other's goes next, though it came last.
    @Test func tenantsTakeTurns() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock(startingAt: Timestamp(seconds: 1_800_000_000))
            let sealing = SealingKey(Secret([UInt8](repeating: 7, count: 32)))
            try await withSigner(at: directory, sealing: sealing, clock: clock.clock) { signer, pool in
                try await signer.start(algorithm: .rs256, record: KeyEvents().record)
                let gate = Semaphore()
                let blocker = Task {
                    try await pool.run(tenant: WorkerPool.ownWork, deadline: .distantFuture) { gate.wait() }
                }
                try await until { pool.counts.running == 1 }
                let order = SigningOrder()
                let now = clock.clock.now()
                var tasks: [Task<Void, any Error>] = []
                for tenantID in [Text](repeating: "loud", count: 40) + ["calm"] {
                    var claims = idTokenClaims(at: now)
                    claims.tenantID = tenantID
                    let wanted = claims
                    tasks.append(
                        Task {
                            _ = try await signer.sign(wanted, deadline: .distantFuture)
                            order.tenantIDs.withLock { $0.append(wanted.tenantID) }
                        })
                    let waiting = tasks.count
                    try await until { pool.counts.queued == waiting }
                }
                gate.signal()
                try await blocker.value
                for task in tasks { try await task.value }
                // Answers are given by up to eight together.
                let place = order.tenantIDs.withLock { $0.firstIndex(of: "calm") }
                #expect(try #require(place) < 17)
            }
        }
    }
}
