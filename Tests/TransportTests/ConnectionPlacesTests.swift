import Base
import TestSupport
import Testing

@testable import Transport

/// Which connections get a place, and which give way.
@Suite struct ConnectionPlacesTests {
    private static func places(_ change: (inout Limits) -> Void) -> ConnectionPlaces {
        var limits = Limits()
        change(&limits)
        return ConnectionPlaces(limits: limits)
    }

    private static func id(_ admission: ConnectionPlaces.Admission) -> UInt64? {
        if case .admitted(let id, _) = admission { id } else { nil }
    }

    @Test func `The oldest of an address gives way at the limit, and nobody below it`() {
        var places = Self.places { $0.connectionsUnauthenticatedPerAddressMax = 2 }
        #expect(places.admit(from: "a") == .admitted(id: 1, displaced: []))
        #expect(places.admit(from: "a") == .admitted(id: 2, displaced: []))
        #expect(places.admit(from: "b") == .admitted(id: 3, displaced: []))
        #expect(places.admit(from: "a") == .admitted(id: 4, displaced: [1]))
        // A connection with a credential does not count among the strangers any more.
        places.authenticated(2)
        #expect(places.admit(from: "a") == .admitted(id: 5, displaced: []))
        #expect(places.admit(from: "a") == .admitted(id: 6, displaced: [4]))
    }

    @Test func `An address that has all its places with credentials gets no more`() {
        var places = Self.places { $0.connectionsPerAddressMax = 2 }
        for _ in 0..<2 { places.authenticated(Self.id(places.admit(from: "a")) ?? 0) }
        #expect(places.admit(from: "a") == .refused)
        #expect(Self.id(places.admit(from: "b")) != nil)
        #expect(places.lostCredential(1) == [])
        #expect(places.admit(from: "a") == .admitted(id: 4, displaced: [1]))
    }

    @Test func `Connections that lose their credential together leave an address no more strangers than it may have`() {
        var places = Self.places {
            $0.connectionsMax = 5_000
            $0.connectionsPerAddressMax = 5_000
            $0.connectionsUnauthenticatedPerAddressMax = 2
        }
        for id in 1...5_000 as ClosedRange<UInt64> {
            #expect(places.admit(from: "proxy") == .admitted(id: id, displaced: []))
            places.authenticated(id)
        }
        for id in 1...5_000 as ClosedRange<UInt64> {
            #expect(places.lostCredential(id) == (id > 2 ? [id - 2] : []))
        }
        #expect(places.count == 2 && places.unauthenticatedCount == 2)
        // A connection that shows a credential again keeps its place; the last one to lose its credential gives way
        // last.
        places.authenticated(4_999)
        #expect(places.lostCredential(4_999) == [])
        #expect(places.admit(from: "proxy") == .admitted(id: 5_001, displaced: [5_000]))
        #expect(places.admit(from: "proxy") == .admitted(id: 5_002, displaced: [4_999]))
    }

    /// 200 seeds × 500 steps, compared with the rule written down in the plainest way.
    @Test func `Connections with a credential keep their places, and the oldest without gives way`() {
        let seed = UInt64.random(in: 0..<UInt64.max / 2)
        for run in seed..<seed + 200 {
            var random = SeededRandom(seed: run)
            var limits = Limits()
            limits.connectionsMax = Int.random(in: 1...20, using: &random)
            limits.connectionsPerAddressMax = Int.random(in: 1...20, using: &random)
            limits.connectionsUnauthenticatedPerAddressMax = Int.random(in: 1...6, using: &random)
            var places = ConnectionPlaces(limits: limits)
            var model: [(id: UInt64, address: Text, isAuthenticated: Bool)] = []
            for _ in 0..<500 {
                let pick = model.randomElement(using: &random)?.id ?? 0
                switch Int.random(in: 0..<10, using: &random) {
                case 0, 1:
                    places.authenticated(pick)
                    if let index = model.firstIndex(where: { $0.id == pick }) { model[index].isAuthenticated = true }
                case 2:
                    let displaced = places.lostCredential(pick)
                    #expect(displaced == Self.expectedOfLoss(&model, pick, limits), "seed \(run)")
                case 3:
                    places.remove(pick)
                    model.removeAll { $0.id == pick }
                default:
                    let address = Text("\(Int.random(in: 0..<4, using: &random))")
                    let admission = places.admit(from: address)
                    #expect(admission == Self.expected(&model, address, limits, admission), "seed \(run)")
                }
                #expect(places.count == model.count, "seed \(run)")
                #expect(places.unauthenticatedCount == model.count { !$0.isAuthenticated }, "seed \(run)")
            }
        }
    }

    /// A connection that loses its credential is the youngest stranger from then on.
    private static func expectedOfLoss(
        _ model: inout [(id: UInt64, address: Text, isAuthenticated: Bool)], _ id: UInt64, _ limits: Limits
    ) -> [UInt64] {
        guard let index = model.firstIndex(where: { $0.id == id && $0.isAuthenticated }) else { return [] }
        var loser = model.remove(at: index)
        loser.isAuthenticated = false
        model.append(loser)
        let strangers = model.filter { $0.address == loser.address && !$0.isAuthenticated }
        guard strangers.count > limits.connectionsUnauthenticatedPerAddressMax else { return [] }
        model.removeAll { $0.id == strangers[0].id }
        return [strangers[0].id]
    }

    private static func expected(
        _ model: inout [(id: UInt64, address: Text, isAuthenticated: Bool)], _ address: Text, _ limits: Limits,
        _ found: ConnectionPlaces.Admission
    ) -> ConnectionPlaces.Admission {
        var displaced: [UInt64] = []
        let same = model.filter { $0.address == address }
        let strangers = same.filter { !$0.isAuthenticated }
        if same.count >= limits.connectionsPerAddressMax
            || strangers.count >= limits.connectionsUnauthenticatedPerAddressMax
        {
            guard let oldest = strangers.first?.id else { return .refused }
            displaced.append(oldest)
            model.removeAll { $0.id == oldest }
        }
        if model.count >= limits.connectionsMax {
            guard let oldest = model.first(where: { !$0.isAuthenticated })?.id else { return .refused }
            displaced.append(oldest)
            model.removeAll { $0.id == oldest }
        }
        let id = Self.id(found) ?? 0
        model.append((id, address, false))
        return .admitted(id: id, displaced: displaced)
    }
}
