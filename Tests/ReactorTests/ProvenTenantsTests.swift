import Base
import TestSupport
import Testing

@testable import Reactor

extension WorkerSharesTests.Scene {
    /// A patient work of each of these tenants has ended in time.
    init(proven tenants: [Text], at now: Instant) {
        self.init()
        for tenant in tenants {
            submit(tenant, 1, isPatient: true, at: now)
            end(tenant, afterSeconds: 0)
        }
    }
}

/// The workers of a pool that are left to the mails of tenants whose mail servers have answered.
@Suite struct ProvenTenantsTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private static func tenant(_ number: Int) -> Text { Text("t\(number)") }

    @Test func `Mail servers that hang from the first mail on leave workers to those that answered`() {
        var scene = WorkerSharesTests.Scene(proven: ["a", "b"], at: start)
        // They all begin at once, so that nothing shows yet that they hang.
        for number in 0..<16 { scene.submit(Self.tenant(number), 1, isPatient: true, at: start) }
        #expect(scene.running.count == 6)
        for tenant in ["a", "b"] as [Text] {
            scene.submit(tenant, 2, isPatient: true, at: start)
            #expect(scene.count(of: tenant) == 1)
        }
        #expect(scene.running.count == 8)
    }

    @Test func `Tenants that are not proven leave a worker to one that has none`() {
        var scene = WorkerSharesTests.Scene()
        scene.submit("a", isPatient: true, at: start)
        #expect(scene.count(of: "a") == 5)
        scene.submit("b", isPatient: true, at: start)
        #expect(scene.count(of: "b") == 1)
    }

    @Test func `A tenant whose mail hung is not proven until one has ended in time`() {
        var scene = WorkerSharesTests.Scene(proven: ["a", "b"], at: start)
        scene.submit("a", 1, isPatient: true, at: start)
        scene.end("a", afterSeconds: 30)
        let later = start.advanced(by: .minutes(60))
        for number in 0..<6 { scene.submit(Self.tenant(number), 1, isPatient: true, at: later) }
        #expect(scene.running.count == 6)
        for tenant in ["a", "b"] as [Text] { scene.submit(tenant, 1, isPatient: true, at: later) }
        #expect(scene.count(of: "a") == 0 && scene.count(of: "b") == 1)
        scene.end(Self.tenant(0), afterSeconds: 0)
        scene.begin(at: later)
        #expect(scene.count(of: "a") == 1)
        scene.end("a", afterSeconds: 0)
        for number in 6..<8 { scene.submit(Self.tenant(number), 1, isPatient: true, at: later) }
        scene.submit("a", 1, isPatient: true, at: later)
        #expect(scene.count(of: "a") == 1)
    }

    @Test func `A mail server that takes two seconds has proven itself, and one that takes three has not`() {
        for (seconds, count) in [(2, 1), (3, 0)] as [(Int64, Int)] {
            var scene = WorkerSharesTests.Scene()
            scene.submit("a", 1, isPatient: true, at: start)
            scene.end("a", afterSeconds: seconds)
            let later = start.advanced(by: .minutes(60))
            for number in 0..<6 { scene.submit(Self.tenant(number), 1, isPatient: true, at: later) }
            scene.submit("a", 1, isPatient: true, at: later)
            #expect(scene.count(of: "a") == count)
        }
    }

    @Test func `Works for which somebody waits prove nothing, and need no proof`() {
        var scene = WorkerSharesTests.Scene()
        scene.submit("a", 1, at: start)
        scene.end("a", afterSeconds: 0)
        for number in 0..<6 { scene.submit(Self.tenant(number), 1, isPatient: true, at: start) }
        scene.submit("a", 1, isPatient: true, at: start)
        #expect(scene.count(of: "a") == 0)
        scene.submit("b", 1, at: start)
        #expect(scene.count(of: "b") == 1)
    }

    @Test func `Of too many proven tenants, those whose mail was sent longest ago are forgotten`() {
        var shares = WorkerShares(workers: 16)
        let work = Semaphore()
        let count = WorkerShares.provenLinesMax + 1
        for number in 0..<count {
            let now = start.advanced(by: .microseconds(Int64(number)))
            shares.began(ObjectIdentifier(work), of: Self.tenant(number), isPatient: true, now: now)
            shares.ended(ObjectIdentifier(work), nanoseconds: 0)
        }
        // These take the workers of the tenants that are not proven.
        let later = start.advanced(by: .milliseconds(500))
        let others = (0..<6).map { _ in Semaphore() }
        for (number, other) in others.enumerated() {
            shares.began(ObjectIdentifier(other), of: Text("other\(number)"), isPatient: true, now: later)
        }
        let admission = shares.admission(now: later)
        let isOldestAdmitted = admission.admits(Self.tenant(0), isPatient: true, runningCount: 0)
        let isNewestAdmitted = admission.admits(Self.tenant(count - 1), isPatient: true, runningCount: 0)
        #expect(!isOldestAdmitted && isNewestAdmitted)
    }
}
