import Base
import Testing

@testable import Outbound

/// Whose lookup gets a place that becomes free.
@Suite struct LookupQueueTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private struct Scene {
        var queue = LookupQueue(places: 4)
        private(set) var begun: [Lookup] = []

        /// The lookup of this name waits, unless there is a place for it.
        @discardableResult
        mutating func append(_ name: Text, of tenant: Text, at now: Instant) -> Lookup? {
            let lookup = Lookup(name, tenant: tenant)
            guard queue.append(lookup) else { return nil }
            begin(at: now)
            return lookup
        }

        mutating func begin(at now: Instant) {
            while let lookup = queue.next(now: now) { begun.append(lookup) }
        }

        /// Ends a lookup that has begun. Returns the names of those that begin then.
        mutating func end(_ name: Text, afterSeconds seconds: Int64, at now: Instant) -> [Text] {
            guard let ended = begun.first(where: { $0.host == name }) else { return [] }
            let count = begun.count
            queue.ended(ended, nanoseconds: seconds * 1_000_000_000)
            begin(at: now)
            return begun.dropFirst(count).map(\.host)
        }
    }

    /// Four lookups that hang: two of "many", one of "b" and one of "c".
    private func fullScene() -> Scene {
        var scene = Scene()
        for (name, tenant) in [("m1", "many"), ("m2", "many"), ("b1", "b"), ("c1", "c")] as [(Text, Text)] {
            scene.append(name, of: tenant, at: start)
        }
        return scene
    }

    @Test func `A place goes to the tenant whose lookups took least, and not to the one that asks most`() {
        var scene = fullScene()
        #expect(scene.begun.map(\.host) == ["m1", "m2", "b1", "c1"])
        for name in ["m3", "m4", "m5"] as [Text] { scene.append(name, of: "many", at: start) }
        scene.append("late1", of: "late", at: start)
        #expect(scene.queue.waitingCount == 4 && scene.queue.runningCount == 4)
        #expect(scene.end("m1", afterSeconds: 1, at: start.advanced(by: .seconds(1))) == ["late1"])
    }

    @Test func `The lookups of a tenant begin in their order`() {
        var scene = fullScene()
        for name in ["late1", "late2"] as [Text] { scene.append(name, of: "late", at: start) }
        #expect(scene.end("b1", afterSeconds: 0, at: start) == ["late1"])
        #expect(scene.end("late1", afterSeconds: 0, at: start) == ["late2"])
    }

    @Test func `As many lookups wait as may run, and one that is taken out leaves its place`() {
        var scene = fullScene()
        var waiting: [Lookup?] = []
        for number in 0..<5 { waiting.append(scene.append(Text("w\(number)"), of: Text("t\(number)"), at: start)) }
        #expect(waiting.map { $0 != nil } == [true, true, true, true, false])
        for lookup in waiting.prefix(2).compactMap({ $0 }) {
            let isRemoved = scene.queue.remove(lookup)
            #expect(isRemoved)
        }
        for lookup in scene.begun {
            let isRemoved = scene.queue.remove(lookup)
            #expect(!isRemoved)
        }
        #expect(scene.queue.waitingCount == 2)
        #expect(scene.end("c1", afterSeconds: 0, at: start) == ["w2"])
    }
}
