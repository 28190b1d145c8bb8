import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Cluster
@testable import Store

/// What a node does after its process ended while it made a snapshot. Over a real PostgreSQL.
@Suite(.serialized) struct SnapshotTrialTests {
    /// What a keeper told.
    private final class Holds: Sendable {
        private let told = Mutex<[Bool]>([])
        var all: [Bool] { told.withLock { $0 } }
        @Sendable func add(_ isHeldBack: Bool) { told.withLock { $0.append(isHeldBack) } }
    }

    /// A test may block its thread for the moment that this takes.
    private func makeSnapshot(_ keeper: ClusterKeeper) throws -> MadeSnapshot? { try keeper.makeSnapshot() }

    private func stop(_ keeper: ClusterKeeper) { keeper.stop() }

    /// As if the process had been started again and again, and each of its snapshots had met a damaged page.
    @Test func `A node that did not outlive its snapshots leaves them to others for a while`() async throws {
        try await withLocalEngine { engine, directory in
            let path = directory + "/0"
            try engine.beginCluster(in: path)
            let store = try engine.node(path)
            defer { close(store) }
            try await store.fill(30)
            let trials = SnapshotTrials(in: path)
            try trials.note(2)
            let holds = Holds()
            let held = try engine.keeper(store, path, log: .silent, onHoldingBack: holds.add) {
                $0.entriesBetweenSnapshots = 20
            }
            defer { stop(held) }
            let position = "SELECT max(position) FROM postern.postern_snapshot WHERE complete"
            // Several rounds, in each of which the snapshot is due.
            usleep(1_000_000)
            #expect(try engine.number(position) == 0)
            #expect(trials.count == 2)
            #expect(holds.all == [true])
            // Nothing was read, so that nothing is known.
            try engine.sql("INSERT INTO postern.postern_snapshot (id, position, hash) VALUES ('\\x00', 0, '\\x00')")
            #expect(try makeSnapshot(held) == nil)
            #expect(trials.count == 2)
            try engine.sql("DELETE FROM postern.postern_snapshot WHERE NOT complete")
            #expect(try makeSnapshot(held) != nil)
            #expect(trials.count == 0)
            #expect(holds.all == [true, false])
            try await store.fill(30, from: 30)
            try blockUntil("a due snapshot is made again") { try engine.number(position) >= 50 }
        }
    }

    @Test func `A node makes snapshots again after its pause, and notes each before it begins`() async throws {
        try await withLocalEngine { engine, directory in
            let path = directory + "/0"
            try engine.beginCluster(in: path)
            let store = try engine.node(path)
            defer { close(store) }
            try await store.fill(30)
            let trials = SnapshotTrials(in: path)
            try trials.note(1)
            let held = try engine.keeper(store, path, log: .silent) {
                ($0.entriesBetweenSnapshots, $0.snapshotPauseMin) = (20, .milliseconds(300))
            }
            defer { stop(held) }
            try blockUntil("a snapshot is made after the pause") {
                try engine.number("SELECT max(position) FROM postern.postern_snapshot WHERE complete") >= 20
            }
            try blockUntil("the note is gone") { trials.count == 0 }
            let pauses = (1...7).map { SnapshotTrials.pause(after: $0, JournalLimits()) }
            #expect(pauses.prefix(3) == [.minutes(5), .minutes(25), .minutes(125)])
            #expect(pauses.suffix(3) == [.hours(24), .hours(24), .hours(24)])
        }
    }
}
