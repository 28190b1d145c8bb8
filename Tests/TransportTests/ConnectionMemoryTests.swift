import Base
import Testing

@testable import Transport

/// The steps by which the memory of all connections stays within its bound.
@Suite struct ConnectionMemoryTests {
    private static let most = 8_000

    private static func memory(loops: Int = 1) -> ConnectionMemory {
        var limits = Limits()
        limits.connectionMemoryMax = most
        limits.connectionMemoryShare = 400
        limits.pageBytesMax = 600
        return ConnectionMemory(limits: limits, loopCount: loops)
    }

    @Test func `Each step begins above its share of the bound`() {
        let steps: [(above: Int, ConnectionMemory.Pressure, holdingMax: Int?)] = [
            (-1, .none, nil), (4_000, .tight, nil), (6_000, .scarce, 400), (7_000, .exhausted, 100),
        ]
        for (number, step) in steps.enumerated() {
            let end = number + 1 < steps.count ? steps[number + 1].above : Self.most
            for held in [step.above + 1, (step.above + end) / 2, end] {
                let memory = Self.memory()
                memory.add(held, loop: 0)
                #expect(memory.pressure == step.1, "\(held)")
                #expect(memory.holdingMax == step.holdingMax, "\(held)")
            }
        }
    }

    @Test func `Loops count for themselves and the sum decides`() {
        let memory = Self.memory(loops: 4)
        for loop in 0..<4 { memory.add(1_500, loop: loop) }
        #expect(memory.byteCount == 6_000 && memory.pressure == .tight)
        memory.add(1, loop: 3)
        #expect(memory.pressure == .scarce)
        memory.add(-1_500, loop: 0)
        #expect(memory.pressure == .tight)
        for loop in 1..<4 { memory.add(-1_500, loop: loop) }
        #expect(memory.byteCount == 1 && memory.pressure == .none && memory.peakByteCount == 6_001)
    }

    @Test func `A line is forgotten with its last connection, and lines do not mix`() {
        let memory = Self.memory()
        let (one, again, other) = (memory.enter("one"), memory.enter("one"), memory.enter("other"))
        one.add(500)
        again.add(-100)
        #expect(again.byteCount == 400 && other.byteCount == 0)
        memory.leave("one")
        #expect(memory.lineCount == 2 && memory.enter("one").byteCount == 400)
        for _ in 0..<2 { memory.leave("one") }
        #expect(memory.lineCount == 1 && memory.enter("one").byteCount == 0)
    }

    @Test(arguments: 1...3) func `Pages that all loops make at once fit below the bound`(_ loops: Int) {
        let memory = Self.memory(loops: loops)
        memory.add(Self.most - 1_000 * loops, loop: 0)
        #expect(memory.hasRoomForPage)
        memory.add(1, loop: 0)
        #expect(!memory.hasRoomForPage)
    }

    @Test(arguments: [4, 64, 256]) func `Of many loops, the others are given a quarter of the bound`(_ loops: Int) {
        let memory = Self.memory(loops: loops)
        memory.add(Self.most / 4 * 3 - 1_000, loop: 0)
        #expect(memory.hasRoom(for: 1_000))
        memory.add(1, loop: loops - 1)
        #expect(!memory.hasRoom(for: 1_000))
    }

    @Test func `Much for long costs more than little for longer`() {
        func cost(_ byteCount: Int, _ seconds: Int64) -> Double {
            MemoryHolding(byteCount: byteCount, waitNanoseconds: seconds * 1_000_000_000, isStranger: false).cost
        }
        #expect(cost(300_000, 2) > cost(64_000, 5))
        #expect(cost(64_000, 10) > cost(300_000, 2))
        #expect(cost(300_000, -5) == 0)
    }
}
