import Base
import Testing

@testable import Reactor

@Suite struct FairQueueTests {
    private func drained(_ queue: FairQueue<String>) -> [String] {
        var queue = queue
        var elements: [String] = []
        while let element = queue.popFirst() { elements.append(element) }
        #expect(queue.count == 0)
        return elements
    }

    private var threeTenants: FairQueue<String> {
        var queue = FairQueue<String>()
        for element in ["a1", "a2", "a3", "b1", "c1", "c2"] {
            queue.append(element, tenant: Text(String(element.prefix(1))))
        }
        return queue
    }

    @Test func tenantsAreServedRoundRobinAndEachInItsOrder() {
        #expect(threeTenants.count == 6)
        #expect(threeTenants.count(of: "a") == 3)
        #expect(drained(threeTenants) == ["a1", "b1", "c1", "a2", "c2", "a3"])
    }

    /// Not one look for each of its elements: thousands may wait, and all workers wait for the one that looks.
    @Test func aTenantThatIsNotServedCostsOneLook() {
        var queue = FairQueue<Int>()
        for number in 0..<1_000 { queue.append(number, tenant: "loud") }
        var (tenantLooks, elementLooks) = (0, 0)
        let none = queue.popFirst { _, _ in
            elementLooks += 1
            return true
        } from: { _ in
            tenantLooks += 1
            return false
        }
        #expect(none == nil)
        #expect(tenantLooks == 1 && elementLooks == 0)
        queue.append(7, tenant: "calm")
        queue.began(tenant: "loud", cost: 0)
        #expect(queue.popFirst(from: { $0 < 1 }) == 7)
        #expect(queue.popFirst(from: { $0 < 1 }) == nil)
    }

    @Test func aTenantThatComesBackWaitsForItsTurn() {
        var queue = threeTenants
        #expect(queue.popFirst() == "a1")
        #expect(queue.popFirst() == "b1")
        queue.append("b2", tenant: "b")
        #expect(drained(queue) == ["c1", "a2", "b2", "c2", "a3"])
    }

    @Test func anElementCanBeTakenOut() {
        var queue = threeTenants
        #expect(queue.remove(tenant: "a") { $0 == "a2" } == "a2")
        #expect(queue.remove(tenant: "b") { $0 == "b1" } == "b1")
        #expect(queue.remove(tenant: "b") { $0 == "b1" } == nil)
        #expect(queue.remove(tenant: "c") { $0 == "a1" } == nil)
        #expect(drained(queue) == ["a1", "c1", "a3", "c2"])
    }

    @Test func allThatMatchCanBeTakenOut() {
        var queue = threeTenants
        #expect(queue.removeAll { $0.hasSuffix("1") } == ["a1", "b1", "c1"])
        #expect(queue.count == 3)
        #expect(drained(queue) == ["a2", "c2", "a3"])
        #expect(queue.removeAll { _ in true }.count == 3)
        #expect(queue.popFirst() == nil)
    }
}
