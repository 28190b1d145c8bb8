import Base
import TestSupport
import Testing

@testable import Reactor

/// How sources share the turns of one tenant.
@Suite struct SourceOrderTests {
    private static let millisecond: Int64 = 1_000_000

    private var queue: FairQueue<String> { FairQueue(sharesBySource: true) }

    /// The first letter of an element names its source.
    private func append(_ elements: [String], to queue: inout FairQueue<String>, cost: Int64 = 0) {
        for element in elements {
            queue.append(element, tenant: "t", source: Text(String(element.prefix(1))), cost: cost)
        }
    }

    private func drained(_ queue: FairQueue<String>) -> [String] {
        var queue = queue
        var elements: [String] = []
        while let element = queue.popFirst() { elements.append(element) }
        return elements
    }

    @Test func sourcesTakeTurnsAndEachKeepsItsOrder() {
        var queue = queue
        append(["a1", "a2", "a3", "b1", "c1", "c2"], to: &queue)
        #expect(drained(queue) == ["a1", "b1", "c1", "a2", "c2", "a3"])
    }

    @Test func withoutSourcesTheOldestGoesFirst() {
        var queue = queue
        for element in ["1", "2", "3"] { queue.append(element, tenant: "t") }
        #expect(drained(queue) == ["1", "2", "3"])
    }

    @Test func aSourceThatComesLaterIsNextButOne() {
        var queue = queue
        append((0..<100).map { "a\($0)" }, to: &queue)
        for _ in 0..<10 { _ = queue.popFirst() }
        append(["b1", "b2"], to: &queue)
        #expect(Array(drained(queue).prefix(4)) == ["a10", "b1", "a11", "b2"])
    }

    @Test func aSourceWithDearElementsGetsFewerTurns() {
        var queue = queue
        append(["a1", "a2", "a3"], to: &queue, cost: 4 * Self.millisecond)
        append((1...8).map { "b\($0)" }, to: &queue, cost: Self.millisecond)
        #expect(drained(queue) == ["a1", "b1", "b2", "b3", "b4", "a2", "b5", "b6", "b7", "b8", "a3"])
    }

    @Test func anElementThatLeavesChangesNobodysOrder() {
        var queue = queue
        append(["a1", "a2", "a3", "b1", "b2", "c1"], to: &queue)
        #expect(queue.remove(tenant: "t") { $0 == "b1" } == "b1")
        #expect(queue.removeAll { $0.hasPrefix("a") && $0 != "a3" } == ["a1", "a2"])
        #expect(queue.count(of: "t", source: "a") == 1 && queue.count(of: "t", source: "b") == 1)
        #expect(drained(queue) == ["c1", "b2", "a3"])
        #expect(queue.removeAll { _ in true } == ["c1", "b2", "a3"])
        #expect(queue.count == 0 && queue.count(of: "t", source: "a") == 0)
    }

    @Test func theLastOfTheSourceWithMostIsTakenOut() {
        var queue = queue
        append(["a1", "a2", "a3", "b1", "b2"], to: &queue)
        #expect(queue.removeLast(ofLongestSourceIn: "t", countMin: 4) == nil)
        #expect(queue.removeLast(ofLongestSourceIn: "t", countMin: 3) == "a3")
        #expect(queue.removeLast(ofLongestSourceIn: "nobody", countMin: 1) == nil)
        #expect(drained(queue) == ["a1", "b1", "a2", "b2"])
    }

    /// Over random loads: whoever comes waits for at most two elements of each other source, whatever these have
    /// waiting, if all elements cost the same.
    @Test func whoComesWaitsForAtMostTwoOfEachOther() {
        var random = SeededRandom.printed()
        for _ in 0..<200 {
            var queue = queue
            let sources = (0..<(1 + random.below(8))).map { Text("s\($0)") }
            for number in 0..<(10 + random.below(90)) {
                let source = sources[random.below(sources.count)]
                queue.append("\(source) \(number)", tenant: "t", source: source, cost: Self.millisecond)
                if random.below(3) == 0 { _ = queue.popFirst() }
            }
            queue.append("late", tenant: "t", source: "late", cost: Self.millisecond)
            let before = drained(queue).prefix { $0 != "late" }.map { $0.prefix { $0 != " " } }
            let counts = Dictionary(grouping: before) { $0 }.mapValues(\.count)
            #expect(counts.values.allSatisfy { $0 <= 2 }, "\(counts)")
        }
    }

    /// New sources come without end, three for each element that begins. An old element waits for those that were there
    /// before it, and for a few times as many.
    @Test func everNewSourcesDoNotHoldUpAnOldElement() {
        var random = SeededRandom.printed()
        for _ in 0..<20 {
            var queue = queue
            append(["a1"], to: &queue, cost: Self.millisecond)
            let others = 1 + random.below(50)
            for number in 0..<others { queue.append("n", tenant: "t", source: Text("\(number)"), cost: 0) }
            append(["a2"], to: &queue, cost: Self.millisecond)
            var begun = 0
            while let element = queue.popFirst(), element != "a2" {
                begun += 1
                for _ in 0..<3 { queue.append("n", tenant: "t", source: Text("new \(queue.count) \(begun)"), cost: 0) }
                guard begun < 100 * (others + 10) else { break }
            }
            #expect(begun < 100 * (others + 10), "\(others) others")
        }
    }

    /// As above, while an element that may not begin stands first.
    @Test func anElementThatMayNotBeginHoldsNobodyUp() {
        var queue = queue
        append(["m1"], to: &queue)
        append((1...5).map { "a\($0)" }, to: &queue)
        var begun: [String] = []
        for number in 0..<100 {
            guard let element = queue.popFirst(where: { element, _ in element != "m1" }) else { break }
            if element.hasPrefix("a") { begun.append(element) }
            queue.append("n", tenant: "t", source: Text("new \(number)"))
        }
        #expect(begun == ["a1", "a2", "a3", "a4", "a5"])
        #expect(queue.popFirst() == "m1")
    }

    /// A source whose waiting elements others displace, again and again, keeps its turns.
    @Test func elementsThatLeaveAreNotCharged() {
        var queue = queue
        append(["a1", "b1"], to: &queue)
        for number in 2..<100 {
            append(["a\(number)", "a\(number)"], to: &queue)
            for _ in 0..<2 {
                let displaced = queue.removeLast(ofLongestSourceIn: "t", countMin: 1)
                #expect(displaced == "a\(number)")
            }
        }
        append(["a100", "c1"], to: &queue)
        #expect(drained(queue) == ["a1", "b1", "c1", "a100"])
    }

    @Test func theSourceWithMostIsKnownAtAnyTime() {
        var random = SeededRandom.printed()
        var (order, sources): (SourceOrder, [Text]) = (SourceOrder(), [])
        for _ in 0..<2_000 {
            if sources.isEmpty || random.below(2) == 0 {
                let source = Text("\(random.below(9))")
                sources.insert(source, at: order.insert(source, cost: Int64(random.below(5)) * Self.millisecond))
            } else {
                let index = random.below(sources.count)
                let isBegun = random.below(2) == 0
                sources.remove(at: index)
                if isBegun { order.begin(at: index) } else { order.leave(at: index) }
            }
            let counts = Dictionary(grouping: sources) { $0 }.mapValues(\.count)
            #expect(order.longestCount == counts.values.max() ?? 0)
            #expect(counts.allSatisfy { order.count(of: $0.key) == $0.value })
            #expect(order.lastOfLongest(countMin: 1) == sources.lastIndex { counts[$0] == order.longestCount })
        }
    }

    @Test func whatIsRememberedOfSourcesIsBounded() {
        var order = SourceOrder()
        for number in 0..<100_000 {
            _ = order.insert(Text("\(number)"), cost: 1_000 * Self.millisecond)
            if number > 10 { order.begin(at: 0) }
        }
        #expect(order.sourceCount <= 2_048)
    }

    @Test func aCostBeyondReasonHoldsUpItsOwnSourceOnly() {
        var queue = queue
        append(["a1", "a2"], to: &queue, cost: .max)
        append(["b1", "b2"], to: &queue, cost: .min)
        #expect(drained(queue) == ["a1", "b1", "b2", "a2"])
    }
}
