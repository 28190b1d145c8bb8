import Base
import TestSupport
import Testing

@testable import Reactor

/// The tenant that has had the least time goes next.
@Suite struct FairQueueChargeTests {
    @Test func `Many short elements of one tenant go before the next long element of another`() {
        var queue = FairQueue<Int64>()
        let (long, short) = (Int64(3_400_000), Int64(20_000))
        for _ in 0..<3 { queue.append(long, tenant: "busy") }
        for _ in 0..<32 { queue.append(short, tenant: "calm") }
        var order: [Int64] = []
        while let cost = queue.popFirst() {
            order.append(cost)
            queue.charge(tenant: cost == long ? "busy" : "calm", nanoseconds: cost)
        }
        #expect(order == [long] + [Int64](repeating: short, count: 32) + [long, long])
    }

    @Test func `What was charged outside of the queue counts when the tenant waits`() {
        var queue = FairQueue<String>()
        queue.charge(tenant: "busy", nanoseconds: 1_000)
        for number in 1...2 { queue.append("busy \(number)", tenant: "busy") }
        queue.append("calm", tenant: "calm")
        #expect(queue.popFirst() == "calm")
        while queue.popFirst() != nil {}
        // Nobody waits any more, so that nobody owes anything, and the tenants take turns again.
        queue.dropDebtsIfIdle()
        queue.append("busy", tenant: "busy")
        queue.append("calm", tenant: "calm")
        #expect(queue.popFirst() == "busy")
    }

    @Test func `Tenants that wait all the time get the same time, whatever their elements cost`() {
        var random = SeededRandom.printed()
        for _ in 0..<20 {
            let tenants = (0..<2 + random.below(5)).map { Text("\($0)") }
            let costs = tenants.map { _ in Int64(20_000 + random.below(3_000_000)) }
            var had = [Int64](repeating: 0, count: tenants.count)
            var queue = FairQueue<Int>()
            for place in tenants.indices { queue.append(place, tenant: tenants[place]) }
            for _ in 0..<2_000 {
                guard let place = queue.popFirst() else { break }
                // As a connection that has more input: it waits again before its time is known.
                queue.append(place, tenant: tenants[place])
                queue.charge(tenant: tenants[place], nanoseconds: costs[place])
                had[place] += costs[place]
            }
            let difference = (had.max() ?? 0) - (had.min() ?? 0)
            #expect(difference <= costs.max() ?? 0, "\(costs) had \(had)")
        }
    }

    @Test func `All operations do what the rules say`() {
        var random = SeededRandom.printed()
        for _ in 0..<200 {
            var (queue, model) = (FairQueue<Int>(), Model())
            for step in 0..<300 {
                let tenant = Text("\(random.below(5))")
                let cost = Int64(random.below(5_000_000))
                switch random.below(8) {
                case 0, 1, 2:
                    queue.append(step, tenant: tenant)
                    model.append(step, tenant)
                case 3, 4:
                    guard let taken = Self.take(&queue, &model) else { continue }
                    queue.charge(tenant: taken, nanoseconds: cost)
                    model.charge(taken, cost)
                case 5:
                    guard let taken = Self.take(&queue, &model) else { continue }
                    queue.began(tenant: taken, cost: cost)
                    model.began(taken, cost)
                case 6 where model.running.isEmpty:
                    queue.charge(tenant: tenant, nanoseconds: cost)
                    model.charge(tenant, cost)
                case 6:
                    let work = model.running.remove(at: random.below(model.running.count))
                    queue.ended(tenant: work.tenant, cost: work.cost, actual: cost)
                    model.ended(work.tenant, work.cost, cost)
                default:
                    queue.dropDebtsIfIdle()
                    model.dropDebtsIfIdle()
                }
                #expect(queue.count == model.count)
            }
        }
    }

    /// Takes the next element out of both, and returns its tenant.
    private static func take(_ queue: inout FairQueue<Int>, _ model: inout Model) -> Text? {
        guard let element = queue.popFirst() else {
            #expect(model.count == 0)
            return nil
        }
        let firsts = model.firsts
        #expect(firsts.contains(element), "\(element) came, and not one of \(firsts)")
        return model.take(element)
    }
}

/// The rules, without the queue's order of turns.
private struct Model {
    private var waiting: [Text: [Int]] = [:]
    private var spent: [Text: Int64] = [:]
    private var time: Int64 = 0
    var running: [(tenant: Text, cost: Int64)] = []

    var count: Int { waiting.values.reduce(0) { $0 + $1.count } }

    private var leastWaiting: Int64? { waiting.keys.map { spent[$0, default: 0] }.min() }
    private var least: Int64 { min(time, leastWaiting ?? time) }

    /// The oldest element of each tenant that may be next.
    var firsts: [Int] { waiting.filter { spent[$0.key] == leastWaiting }.compactMap { $0.value.first } }

    mutating func append(_ element: Int, _ tenant: Text) {
        if waiting[tenant] == nil { spent[tenant] = max(spent[tenant] ?? least, least) }
        waiting[tenant, default: []].append(element)
    }

    mutating func take(_ element: Int) -> Text? {
        guard let tenant = waiting.first(where: { $0.value.first == element })?.key else { return nil }
        waiting[tenant]?.removeFirst()
        if waiting[tenant]?.isEmpty == true { waiting[tenant] = nil }
        time = max(time, spent[tenant, default: 0])
        return tenant
    }

    mutating func charge(_ tenant: Text, _ nanoseconds: Int64) {
        let mayBeBehind = waiting[tenant] == nil && !running.contains { $0.tenant == tenant }
        let before = spent[tenant] ?? least
        spent[tenant] = (mayBeBehind ? max(before, least) : before) + nanoseconds
    }

    mutating func began(_ tenant: Text, _ cost: Int64) {
        running.append((tenant, cost))
        spent[tenant] = (spent[tenant] ?? least) + max(FairQueue<Int>.costMin, cost)
    }

    /// The work is no longer among `running`.
    mutating func ended(_ tenant: Text, _ cost: Int64, _ actual: Int64) {
        let costMin = FairQueue<Int>.costMin
        spent[tenant] = (spent[tenant] ?? 0) + max(costMin, actual) - max(costMin, cost)
        dropDebtsIfIdle()
    }

    mutating func dropDebtsIfIdle() {
        if running.isEmpty, count == 0 { (spent, time) = ([:], 0) }
    }
}
