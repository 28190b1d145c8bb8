import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Cluster
@testable import Store

/// Joinings that fail late, in a real PostgreSQL: what the next attempt finds, and which entries the journal keeps.
@Suite(.serialized) struct RejoiningTests {
    private struct Refused: Error {}

    private static func nodeCount(_ engine: LocalEngine) throws -> Int {
        try engine.number("SELECT count(*) FROM postern.postern_node")
    }

    @Test func `A node whose engine goes away at the last step has joined`() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let first = try engine.node(directory + "/0")
            defer { close(first) }
            try await first.fill(10)
            var limits = LocalEngine.limits
            limits.journal.joiningPatience = .milliseconds(300)
            let joining = try engine.joining(directory + "/1", "postern", limits)
            let joined = try run(joining) { _ in try engine.stop() }
            #expect(joined.kept == nil && !Joining.isInterrupted(in: directory + "/1"))
            try engine.start()
            // The entries behind the snapshot are kept until the node has read them.
            #expect(try Self.nodeCount(engine) == 1)
            let second = try engine.node(directory + "/1")
            defer { close(second) }
            #expect(try await second.contents() == first.contents())
        }
    }

    @Test func `While a node joins again, and when that fails, the entries are kept that its store needs`() async throws
    {
        try await withLocalEngine { engine, directory in
            let paths = (0..<2).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0], limits: LocalEngine.limits)
            try engine.join(paths[1])
            let first = try engine.node(paths[0])
            defer { close(first) }
            try await first.fill(20)
            _ = try #require(try engine.makeSnapshot(of: first))
            let tables = try engine.nodeTables()
            #expect(throws: Refused.self) {
                try engine.joining(paths[1]).run(replacing: true) { _ in
                    #expect(try tables.trim { true }.entryCount == 0)
                    throw Refused()
                }
            }
            #expect(try Self.nodeCount(engine) == 1)
            #expect(try tables.trim { true }.entryCount == 0)
            let second = try engine.node(paths[1])
            defer { close(second) }
            #expect(try await second.contents() == first.contents())
        }
    }

    @Test func `Once a node has joined again, the entries that its store of before needed are not kept`() async throws {
        try await withLocalEngine { engine, directory in
            let paths = (0..<2).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0], limits: LocalEngine.limits)
            try engine.join(paths[1])
            let first = try engine.node(paths[0])
            defer { close(first) }
            try await first.fill(20)
            let made = try #require(try engine.makeSnapshot(of: first))
            try engine.join(paths[1], replacing: true)
            #expect(try engine.nodeTables().trim { true }.entryCount == Int(made.position))
        }
    }

    private func run(
        _ joining: Joining, _ beforeTakingPlace: (String) throws -> Void
    ) throws -> Joining.Joined { try joining.run(beforeTakingPlace: beforeTakingPlace) }
}
