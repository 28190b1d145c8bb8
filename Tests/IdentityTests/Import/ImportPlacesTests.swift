import Base
import TestSupport
import Testing

@testable import Identity

/// The places of the batches that are decoded at a time.
@Suite struct ImportPlacesTests {
    /// Takes a place in a task of its own, and tells when that is done.
    private static func taking(_ places: ImportPlaces, _ tenantID: Text) async throws -> Task<ImportPlace, any Error> {
        let before = places.waitingCount
        let task = Task { try await places.take(tenantID) }
        try await until("a batch waits") { places.waitingCount != before }
        return task
    }

    @Test func `One tenant has half of the places, and a newcomer finds one`() async throws {
        let places = ImportPlaces(countMax: 8)
        var held: [ImportPlace] = []
        for _ in 0..<4 { held.append(try await places.take("one")) }
        let fifth = try await Self.taking(places, "one")
        #expect(places.waitingCount == 1)
        // Four are free, and this tenant has none.
        let other = try await places.take("other")
        #expect(places.waitingCount == 1)
        other.leave()
        #expect(places.waitingCount == 1)
        held.removeLast().leave()
        held.append(try await fifth.value)
        #expect(places.waitingCount == 0)
        for place in held { place.leave() }
        // All are free again.
        for _ in 0..<4 { _ = try await places.take("one") }
    }

    @Test func `A place that is left goes to a batch whose tenant may take it`() async throws {
        let places = ImportPlaces(countMax: 2)
        let ofOne = try await places.take("one")
        let second = try await Self.taking(places, "one")
        let third = try await Self.taking(places, "one")
        let ofTwo = try await places.take("two")
        let later = try await Self.taking(places, "two")
        // One place is free: not for the tenant that has the other, although its batches came first.
        ofTwo.leave()
        try await later.value.leave()
        #expect(places.waitingCount == 2)
        ofOne.leave()
        try await second.value.leave()
        try await third.value.leave()
        #expect(places.waitingCount == 0)
    }

    @Test func `A batch that is cancelled while it waits leaves no gap`() async throws {
        let places = ImportPlaces(countMax: 2)
        let held = try await places.take("one")
        let cancelled = try await Self.taking(places, "one")
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { _ = try await cancelled.value }
        #expect(places.waitingCount == 0)
        held.leave()
        try await places.take("one").leave()
    }
}
