import Base
import Glibc
import Testing

@testable import Reactor

@Suite struct WorkerPoolEndTests {
    @Test func everyThreadOfAPoolEnds() async throws {
        let pool = WorkerPool(name: "test", workers: 8, queueMax: 64, queueMaxPerTenant: 64)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<32 {
                let deadline = number % 4 == 0 ? Instant.now : .distantFuture
                group.addTask {
                    _ = try? await pool.run(tenant: .empty, deadline: deadline, isShort: true) { usleep(100) }
                }
            }
            group.cancelAll()
            try await group.waitForAll()
        }
        end(pool)
        #expect(pool.counts.running == 0 && pool.counts.queued == 0)
    }

    /// A test may block its thread for a moment.
    private func end(_ pool: WorkerPool) { pool.close() }
}
