import Base
import Identity
import Messages
import Reactor
import Store
import Synchronization
import TestSupport
import Testing

/// A tenant that has many streams, and changes all the time what they follow, takes no turn of a loop for itself.
@Suite struct ChangeHubTests {
    private static let watchCount = 200
    private static let perTurnMax = 16

    @Test func manyAnnouncementsWakeEachWatchOnceAndFewInATurn() async throws {
        let wakes = try await Self.wakes(timeout: .seconds(300)) { hub, _ in
            for _ in 0..<1_000 { hub.announce([Self.topic("busy"), Self.topic("nobody follows")]) }
            hub.announce([Self.topic("calm")])
        }
        let counts = Dictionary(grouping: wakes, by: \.watch).mapValues(\.count)
        #expect(counts.count == Self.watchCount + 1 && counts.values.allSatisfy { $0 == 1 })
        try Self.expectFairTurns(wakes)
    }

    /// Heartbeats of many streams that are due at the same second are spread in the same way.
    @Test func watchesThatAreLateTogetherWakeFewInATurn() async throws {
        Self.expectFewInATurn(try await Self.wakes(timeout: .seconds(1)) { _, _ in })
    }

    @Test func anAnnouncementWhileAWatchIsDueIsNotLost() async throws {
        let wakes = try await Self.wakes(timeout: .seconds(300)) { hub, loop in
            hub.announce([Self.topic("busy"), Self.topic("calm")])
            // Follows behind the turn in which the first were woken.
            loop.run { hub.announce([Self.topic("busy")]) }
        }
        let counts = Dictionary(grouping: wakes, by: \.watch).mapValues(\.count)
        #expect(counts.count == Self.watchCount + 1)
        try Self.expectFairTurns(wakes)
    }

    /// Also where the reads of the watch's loop share a snapshot.
    @Test func aReadBehindAWatchSeesWhatWasCommittedBeforeTheWatch() throws {
        try withTemporaryStore(tables: Tables.all) { store in
            let hub = ChangeHub(of: store)
            let loop = EventLoop(name: "test-loop")
            loop.start()
            defer { Self.end(loop) }
            let seen = Mutex<[Snapshot]>([])
            let done = Semaphore()
            loop.run {
                defer { done.signal() }
                func look() {
                    guard let snapshot = try? store.read({ $0.snapshot }) else { return }
                    seen.withLock { $0.append(snapshot) }
                }
                guard let reader = try? store.reader() else { return }
                reader.beginSharing()
                look()
                _ = try? store.writeBlocking { try $0.put(Tables.users, UserKey("", "ada"), StoredUser()) }
                look()
                let watch = hub.watch([Self.topic("calm")], in: "calm", on: loop)
                look()
                watch.end()
                reader.endSharing()
            }
            done.wait()
            let snapshots = seen.withLock { $0 }
            try #require(snapshots.count == 3)
            #expect(snapshots[0] == snapshots[1] && snapshots[1] < snapshots[2])
        }
    }

    private struct Wake {
        let tenantID: Text
        let watch: Int
        let turn: Int
    }

    /// What happened on the loop; touched by its thread alone.
    private final class Story: @unchecked Sendable {
        var turn = 0
        var wakes: [Wake] = []
        var isOver = false

        func countTurns(of loop: EventLoop) {
            turn += 1
            if !isOver { loop.run { self.countTurns(of: loop) } }
        }
    }

    private static func topic(_ tenantID: Text) -> ChangeTopic { ChangeTopic("test", tenantID.bytes) }

    /// The wakes of many watches of a busy tenant and one of a calm one, which is the last to be announced. `announce`
    /// is called while the loop stands still; it ends when every watch was woken and nothing more comes.
    private static func wakes(
        timeout: Duration, _ announce: (ChangeHub, EventLoop) -> Void
    ) async throws -> [Wake] {
        try await withTemporaryStore(tables: []) { store in
            let hub = ChangeHub(of: store)
            let loop = EventLoop(name: "test-loop")
            loop.start()
            defer { end(loop) }
            let story = Story()
            let (isReady, mayGoOn) = (Semaphore(), Semaphore())
            let everyone = Promise<Void>()
            loop.run {
                for number in 0...watchCount {
                    let tenantID: Text = number == watchCount ? "calm" : "busy"
                    follow(hub, tenantID, number, timeout, on: loop, story, everyone)
                }
                // The watches wait after the jobs of this turn.
                loop.run {
                    isReady.signal()
                    mayGoOn.wait()
                    story.countTurns(of: loop)
                }
            }
            wait(isReady)
            announce(hub, loop)
            mayGoOn.signal()
            try await everyone.value()
            let settled = Promise<[Wake]>()
            settle(60, story, on: loop, settled)
            return try await settled.value()
        }
    }

    private static func follow(
        _ hub: ChangeHub, _ tenantID: Text, _ number: Int, _ timeout: Duration, on loop: EventLoop, _ story: Story,
        _ everyone: Promise<Void>
    ) {
        Task.immediate(executorPreference: loop) {
            let watch = hub.watch([topic(tenantID)], in: tenantID, on: loop)
            while (try? await watch.next(timeout: timeout)) != nil, !story.isOver {
                story.wakes.append(Wake(tenantID: tenantID, watch: number, turn: story.turn))
                if Set(story.wakes.map(\.watch)).count > watchCount { everyone.succeed(()) }
            }
            watch.end()
        }
    }

    /// Ends the story after some turns, in which whatever is still due comes.
    private static func settle(_ turns: Int, _ story: Story, on loop: EventLoop, _ settled: Promise<[Wake]>) {
        loop.run {
            if turns > 0 { return settle(turns - 1, story, on: loop, settled) }
            story.isOver = true
            settled.succeed(story.wakes)
        }
    }

    /// What a woken watch does is a job of the loop. On a busy machine a turn may have no time for all of them, and the
    /// next turns do them besides their own.
    private static let lateTurns = 3

    private static func expectFewInATurn(_ wakes: [Wake]) {
        let perTurn = Dictionary(grouping: wakes, by: \.turn).mapValues(\.count)
        #expect(perTurn.values.allSatisfy { $0 <= (1 + lateTurns) * perTurnMax }, "\(perTurn)")
        #expect(perTurn.count >= watchCount / ((1 + lateTurns) * perTurnMax), "\(perTurn)")
    }

    private static func expectFairTurns(_ wakes: [Wake]) throws {
        expectFewInATurn(wakes)
        // The calm tenant's only watch came in the first turn, among those of the busy one.
        let first = try #require(wakes.map(\.turn).min())
        let calm = try #require(wakes.first { $0.tenantID == "calm" }?.turn)
        #expect(calm <= first + lateTurns)
    }

    /// Short: the loop is at work on it.
    private static func wait(_ semaphore: Semaphore) { semaphore.wait() }

    private static func end(_ loop: EventLoop) {
        loop.stop()
        loop.join()
    }
}
