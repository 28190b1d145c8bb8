import Base
import TestSupport
import Testing

@testable import Reactor

/// How the tenants of a pool share its workers while their works hold them for as long as they like.
@Suite struct WorkerSharesTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    /// A pool of 16 workers without threads: works begin as soon as the rules let them.
    struct Scene {
        var queue: WorkQueue
        private(set) var running: [Work] = []

        init(perTenant: Int = 16) {
            let limits = WorkQueue.Limits(
                workers: 16, queueMax: 64, queueMaxPerTenant: 16, workersPerTenantMax: perTenant)
            queue = WorkQueue(name: "test", limits: limits)
        }

        func count(of tenant: Text) -> Int { running.count { $0.tenant == tenant } }

        /// Submits works of the tenant. Returns how many were refused.
        @discardableResult
        mutating func submit(
            _ tenant: Text, _ count: Int = 16, isPatient: Bool = false, at now: Instant
        ) -> Int {
            var refusedCount = 0
            for _ in 0..<count {
                let work = Work(
                    tenant: tenant, deadline: .distantFuture, isPatient: isPatient, execute: { {} }, fail: { _ in })
                var expired: [Work] = []
                do { try queue.submit(work, now: now, expired: &expired) } catch { refusedCount += 1 }
                begin(at: now)
            }
            return refusedCount
        }

        mutating func begin(at now: Instant) {
            while running.count < 16, let work = queue.take(now: now).next { running.append(work) }
        }

        mutating func end(_ tenant: Text, afterSeconds seconds: Int64) {
            while let index = running.firstIndex(where: { $0.tenant == tenant }) {
                queue.finished(running.remove(at: index), afterNanoseconds: seconds * 1_000_000_000)
            }
        }
    }

    private static func tenant(_ number: Int) -> Text { Text("t\(number)") }

    @Test func `A tenant's share shrinks as others come, and those who come late find a worker`() {
        var scene = Scene()
        scene.submit("a", at: start)
        #expect(scene.count(of: "a") == 6)
        scene.submit("b", at: start)
        #expect(scene.count(of: "b") == 4)
        for number in 0..<3 {
            scene.submit(Self.tenant(number), at: start)
            #expect(scene.count(of: Self.tenant(number)) >= 1)
        }
        // What ends is given to those who have less, and not to the one who waits longest.
        scene.end("a", afterSeconds: 0)
        scene.submit("late", at: start)
        #expect(scene.count(of: "late") >= 1)
    }

    @Test func `The last quarter of the workers is for tenants that have none`() {
        var scene = Scene()
        // Nothing shows yet that their servers hang.
        for number in 0..<3 { scene.submit(Self.tenant(number), at: start) }
        #expect(scene.running.count == 12)
        for number in 3..<7 {
            scene.submit(Self.tenant(number), at: start)
            #expect(scene.count(of: Self.tenant(number)) == 1)
        }
        #expect(scene.running.count == 16)
    }

    @Test func `A mail under way takes nothing of the last quarter from its tenant's sign-ins`() {
        var scene = Scene()
        scene.submit("a", 1, isPatient: true, at: start)
        for number in 0..<3 { scene.submit(Self.tenant(number), at: start) }
        #expect(scene.running.count == 12)
        scene.submit("a", at: start)
        #expect(scene.count(of: "a") == 2)
    }

    /// Each of these tenants had a work that hung.
    private func sceneOfSlow(_ tenants: [Text]) -> Scene {
        var scene = Scene()
        for tenant in tenants { scene.submit(tenant, 1, at: start) }
        for tenant in tenants { scene.end(tenant, afterSeconds: 30) }
        return scene
    }

    @Test func `Slow tenants leave some of their workers to a slow tenant that has none`() {
        var scene = sceneOfSlow(["a", "b", "recovered"])
        let later = start.advanced(by: .minutes(60))
        for tenant in ["a", "b"] as [Text] { scene.submit(tenant, at: later) }
        #expect(scene.count(of: "a") == 6 && scene.count(of: "b") == 1)
        scene.submit("recovered", 1, at: later)
        #expect(scene.count(of: "recovered") == 1)
        // It is not slow any more, and has its share of all workers.
        scene.end("recovered", afterSeconds: 0)
        scene.submit("recovered", 2, at: later)
        #expect(scene.count(of: "recovered") == 2)
    }

    @Test func `A slow tenant has as many workers as any other while nobody else wants them`() {
        var scene = sceneOfSlow(["a"])
        scene.submit("a", at: start.advanced(by: .minutes(60)))
        #expect(scene.count(of: "a") == 6)
    }

    @Test func `Slow tenants have half of the workers together, however many they are`() {
        var scene = Scene()
        for number in 0..<16 { scene.submit(Self.tenant(number), 1, at: start) }
        #expect(scene.running.count == 16)
        let later = start.advanced(by: .seconds(30))
        for number in 0..<16 { scene.end(Self.tenant(number), afterSeconds: 30) }
        for number in 0..<16 { scene.submit(Self.tenant(number), 2, at: later) }
        #expect(scene.running.count == 8)
        scene.submit("quick", 2, at: later)
        #expect(scene.count(of: "quick") == 2)
    }

    @Test func `A tenant whose work hung is slow until one has ended in time`() {
        var scene = Scene()
        for number in 0..<16 { scene.submit(Self.tenant(number), 1, at: start) }
        for number in 0..<16 { scene.end(Self.tenant(number), afterSeconds: 30) }
        // They have paid long ago, and nothing shows that their servers answer.
        let later = start.advanced(by: .minutes(60))
        for number in 0..<16 { scene.submit(Self.tenant(number), 1, at: later) }
        #expect(scene.running.count == 8)
        for number in 0..<16 { scene.end(Self.tenant(number), afterSeconds: 0) }
        scene.begin(at: later)
        #expect(scene.running.count == 8)
        for number in 0..<16 { scene.end(Self.tenant(number), afterSeconds: 0) }
        for number in 0..<16 { scene.submit(Self.tenant(number), 1, at: later) }
        #expect(scene.running.count == 16)
    }

    @Test func `A quick work does not pay for a slow one`() {
        var scene = Scene()
        for number in 0..<8 { scene.submit(Self.tenant(number), 1, at: start) }
        for number in 0..<8 { scene.end(Self.tenant(number), afterSeconds: 30) }
        let later = start.advanced(by: .seconds(30))
        for number in 0..<8 { scene.submit(Self.tenant(number), 1, at: later) }
        for number in 0..<8 { scene.end(Self.tenant(number), afterSeconds: 0) }
        let shortlyAfter = later.advanced(by: .minutes(9))
        for number in 0..<8 { scene.submit(Self.tenant(number), 2, at: shortlyAfter) }
        #expect(scene.running.count == 8)
    }

    @Test func `A tenant whose works run for long counts as slow while they run`() {
        var scene = Scene()
        for number in 0..<8 { scene.submit(Self.tenant(number), 1, at: start) }
        let later = start.advanced(by: .seconds(2))
        scene.submit(Self.tenant(0), 1, at: later)
        #expect(scene.count(of: Self.tenant(0)) == 1)
        scene.submit("quick", 1, at: later)
        #expect(scene.count(of: "quick") == 1)
    }

    @Test func `Works for which nobody waits have half of the workers together`() {
        var scene = Scene(proven: (0..<32).map(Self.tenant), at: start)
        for number in 0..<32 { scene.submit(Self.tenant(number), 1, isPatient: true, at: start) }
        #expect(scene.running.count == 8)
        scene.submit("urgent", 2, at: start)
        #expect(scene.count(of: "urgent") == 2)
        // The next one begins when one of them ends.
        scene.end(Self.tenant(0), afterSeconds: 1)
        scene.begin(at: start.advanced(by: .seconds(1)))
        #expect(scene.running.count { $0.isPatient } == 8)
    }

    @Test func `Mail servers that hang leave workers to the mails of others`() {
        var scene = Scene(proven: ["quick"] + (0..<8).map(Self.tenant), at: start)
        for number in 0..<8 { scene.submit(Self.tenant(number), 1, isPatient: true, at: start) }
        for number in 0..<8 { scene.end(Self.tenant(number), afterSeconds: 30) }
        let later = start.advanced(by: .minutes(20))
        for number in 0..<8 { scene.submit(Self.tenant(number), 1, isPatient: true, at: later) }
        #expect(scene.running.count == 4)
        scene.submit("quick", 2, isPatient: true, at: later)
        #expect(scene.count(of: "quick") == 2)
    }

    @Test func `A mail server that hangs does not make the hooks of its tenant slow`() {
        var scene = Scene()
        for number in 0..<8 { scene.submit(Self.tenant(number), 1, isPatient: true, at: start) }
        for number in 0..<8 { scene.end(Self.tenant(number), afterSeconds: 30) }
        let later = start.advanced(by: .seconds(30))
        for number in 0..<8 { scene.submit(Self.tenant(number), 2, at: later) }
        #expect(scene.running.count > 8)
    }

    @Test func `Works that have no queue share as those that have one`() {
        var shares = WorkerShares(workers: 4)
        let works = (0..<8).map { _ in Semaphore() }
        var begun: [Bool] = []
        for (work, tenant) in zip(works, ["a", "a", "a", "b", "c", "d"] as [Text]) {
            begun.append(shares.begin(ObjectIdentifier(work), of: tenant, now: start))
        }
        #expect(begun == [true, true, false, true, true, false])
        for work in works.prefix(2) { shares.ended(ObjectIdentifier(work), nanoseconds: 30_000_000_000) }
        // Half of the works are those of slow tenants by now. The tenant that was slow gets no third one.
        let later = start.advanced(by: .seconds(30))
        let isSlowBegun = shares.begin(ObjectIdentifier(works[6]), of: "a", now: later)
        let isOtherBegun = shares.begin(ObjectIdentifier(works[7]), of: "d", now: later)
        #expect(!isSlowBegun && isOtherBegun)
    }

    @Test func `The server's own work takes any free worker, and holds nobody back`() {
        var scene = Scene()
        for number in 0..<14 { scene.submit(Self.tenant(number), 1, at: start) }
        scene.submit(WorkerPool.ownWork, 2, at: start)
        #expect(scene.count(of: WorkerPool.ownWork) == 2)
    }

    @Test func `A tenant has its number of workers at most, and mails half of them`() {
        var scene = Scene(perTenant: 4)
        scene.submit("a", 10, isPatient: true, at: start)
        #expect(scene.count(of: "a") == 2)
        scene.submit("a", 10, at: start)
        #expect(scene.count(of: "a") == 4)
        scene.submit("b", 10, at: start)
        #expect(scene.count(of: "b") == 4)
        scene.end("a", afterSeconds: 0)
        scene.begin(at: start)
        #expect(scene.count(of: "a") == 4)
    }

    @Test func `A tenant that may have one worker sends its mails all the same`() {
        var scene = Scene(perTenant: 1)
        scene.submit("a", 2, isPatient: true, at: start)
        #expect(scene.count(of: "a") == 1)
    }

    @Test func `The waiting places are shared as well`() {
        var scene = Scene()
        for number in 0..<8 { #expect(scene.submit(Self.tenant(number), at: start) < 16) }
        #expect(scene.submit("late", 1, at: start) == 0)
    }

    @Test func `Work that waits in vain is taken out at its deadline, also while workers are idle`() async throws {
        let pool = WorkerPool(
            name: "test", workers: 4, queueMax: 16, queueMaxPerTenant: 16, workersPerTenantMax: 16)
        let gate = Semaphore()
        let holding = (0..<3).map { _ in
            Task { try await pool.run(tenant: "a", deadline: .distantFuture) { gate.wait() } }
        }
        try await until("two works run and one waits") { pool.counts.running >= 2 && pool.counts.queued >= 1 }
        let deadline = Instant.now.advanced(by: .milliseconds(300))
        let waiting = Task { try await pool.run(tenant: "a", deadline: deadline) {} }
        try await until("the work is taken out") { pool.counts.expired == 1 }
        let result = await waiting.result
        #expect(throws: Failure.self) { try result.get() }
        // The works that hold the workers have not ended.
        #expect(pool.counts.done == 0)
        for _ in 0..<3 { gate.signal() }
        for task in holding { try await task.value }
        close(pool)
    }

    /// Closing may block a test's thread for a moment.
    private func close(_ pool: WorkerPool) { pool.close() }
}
