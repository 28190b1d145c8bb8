import Base
import Reactor
import Testing

@Suite struct EventLoopGroupTests {
    @Test func nextIsTheLoopWithTheFewestConnections() {
        let group = EventLoopGroup(count: 3)
        let first = (0..<3).map { _ in ObjectIdentifier(group.next()) }
        #expect(first == group.loops.map { ObjectIdentifier($0) })
        group.loops[1].connections.add(-1)
        #expect(group.next() === group.loops[1])
        #expect(group.loops.map(\.connections.value) == [1, 1, 1])
    }

    @Test func aHashAlwaysHasTheSameLoop() {
        let group = EventLoopGroup(count: 3)
        for hash: UInt64 in [0, 1, 2, 3, .max] {
            #expect(group.loop(for: hash) === group.loop(for: hash))
        }
        #expect(Set((0..<3).map { ObjectIdentifier(group.loop(for: $0)) }).count == 3)
    }

    @Test func aGroupHasOneLoopPerCoreUnlessToldOtherwise() {
        #expect(EventLoopGroup().loops.count == EventLoopGroup.coreCount)
        #expect(EventLoopGroup(count: 1, name: "single").loops.map(\.name) == ["single-0"])
    }

    @Test func everyLoopRunsOnAThreadOfItsOwn() async throws {
        try await withGroup(2) { group in
            let elsewhere = await Resident(on: group.loops[0]).perform { _ in
                group.loops.map(\.isCurrent)
            }
            #expect(elsewhere == [true, false])
            #expect(await Resident(on: group.loops[1]).perform { _ in group.current === group.loops[1] })
            #expect(group.current == nil)
        }
    }
}
