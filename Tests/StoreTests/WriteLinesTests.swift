import Base
import TestSupport
import Testing

@testable import Store

@Suite struct WriteLinesTests {
    private func request(_ tenant: Text) -> WriteRequest {
        WriteMeter.$current.withValue(WriteMeter(tenant: tenant)) { WriteRequest({ _ in }, .callback({ _ in })) }
    }

    private func lines(_ tenants: [Text]) -> WriteLines<WriteRequest> {
        var lines = WriteLines<WriteRequest>(countMax: 1_000)
        for tenant in tenants { add(tenant, to: &lines) }
        return lines
    }

    private func add(_ tenant: Text, to lines: inout WriteLines<WriteRequest>) {
        let isAdded = lines.add(request(tenant))
        #expect(isAdded)
    }

    /// Takes requests of these tenants, which must take `cost` nanoseconds each.
    private func run(
        _ lines: inout WriteLines<WriteRequest>, _ count: Int, cost: (Text) -> Int64 = { _ in 0 }
    ) -> [Text] {
        let taken = lines.take(countMax: count)
        for request in taken { request.cost = cost(request.tenant) }
        lines.ended(taken[...])
        return taken.map(\.tenant)
    }

    @Test func tenantsTakeTurns() {
        var lines = lines(["a", "a", "a", "b", "c", "c"])
        #expect(run(&lines, 4) == ["a", "b", "c", "a"])
        #expect(run(&lines, 9) == ["c", "a"])
        #expect(lines.count == 0)
        #expect(lines.tenantCount == 0)
    }

    @Test func aTenantWaitsWhileTheOthersHaveHadLessTime() {
        var lines = lines(["slow", "slow", "slow"] + Array(repeating: "quick", count: 12))
        let cost: (Text) -> Int64 = { ($0 == "slow" ? 10 : 1) * WriteLines<WriteRequest>.costMin }
        #expect(run(&lines, 2, cost: cost) == ["slow", "quick"])
        // The slow one is nine turns ahead.
        #expect(run(&lines, 9, cost: cost) == Array(repeating: "quick", count: 9))
        #expect(run(&lines, 2, cost: cost).contains("slow"))
    }

    @Test func idleTimeEarnsNoCreditAndDebtsStay() {
        var lines = lines(["busy", "busy", "idle"])
        _ = run(&lines, 2) { _ in 1_000_000 }
        for _ in 0..<50 {
            add("busy", to: &lines)
            _ = run(&lines, 1) { _ in 1_000_000 }
        }
        // `idle` was away for 50 turns of `busy`, which still has a request. It gets one turn before it, not fifty.
        for _ in 0..<4 {
            add("idle", to: &lines)
            add("busy", to: &lines)
        }
        let order = (0..<6).flatMap { _ in run(&lines, 1) { _ in 1_000_000 } }
        #expect(order.prefix(4).count { $0 == "idle" } <= 3, "\(order)")
        #expect(order.contains("busy"))
    }

    @Test func whatIsPutBackIsTheNextOfItsTenant() {
        for takenCount in 1...6 {
            for ranCount in 0..<takenCount {
                let requests = ["a", "a", "b", "a", "b", "c"].map { request(Text($0)) }
                var lines = WriteLines<WriteRequest>(countMax: 100)
                for request in requests { _ = lines.add(request) }
                #expect(lines.count == 6)
                let taken = lines.take(countMax: takenCount)
                lines.putBack(taken[ranCount...])
                lines.ended(taken[..<ranCount])
                #expect(lines.count == 6 - ranCount)
                let rest = lines.take(countMax: 6)
                for tenant: Text in ["a", "b", "c"] {
                    let inOrder = requests.filter { $0.tenant == tenant }
                    let got = (taken[..<ranCount] + rest).filter { $0.tenant == tenant }
                    #expect(got.elementsEqual(inOrder, by: ===), "\(takenCount) taken, \(ranCount) ran")
                }
            }
        }
    }

    @Test func oneTenantGetsHalfOfThePlacesAndANewcomerAlwaysFindsOne() {
        var lines = WriteLines<WriteRequest>(countMax: 64)
        var counts: [Int] = []
        for tenant in ["a", "b", "c", "d"] {
            counts.append((0..<64).count { _ in lines.add(request(Text(tenant))) })
        }
        #expect(counts == [32, 16, 8, 4])
        for number in 0..<4 { add(Text("new \(number)"), to: &lines) }
        #expect(lines.count == 64)
        let isAdded = lines.add(request("last"))
        #expect(!isAdded)
        _ = lines.take(countMax: 1)
        add("last", to: &lines)
    }

    @Test func tenantsThatAreGoneAreForgotten() {
        var lines = WriteLines<WriteRequest>(countMax: 10)
        // One that waits all the time keeps the accounts from being dropped together.
        add("first", to: &lines)
        for number in 0..<5_000 {
            add(Text("\(number)"), to: &lines)
            lines.ended(lines.take(countMax: 1)[...])
            if number % 7 == 0 { add("first", to: &lines) }
            if lines.count > 4 { _ = run(&lines, 4) }
        }
        #expect(lines.tenantCount <= 1_030)
    }

    /// As the writer does: a batch takes all that wait, and gives back what it had no time for.
    @Test func debtsStayWhenEverythingIsTakenAndMostIsPutBack() {
        let cost: (Text) -> Int64 = { $0 == "heavy" ? 10_000_000 : 1_000_000 }
        var lines = WriteLines<WriteRequest>(countMax: 1_000)
        for tenant in ["heavy"] + (0..<20).map({ Text("\($0)") }) { for _ in 0..<2 { add(tenant, to: &lines) } }
        var had: [Text: Int64] = [:]
        for _ in 0..<2_000 {
            let taken = lines.take(countMax: 512)
            var (time, ranCount) = (Int64(0), 0)
            while ranCount < taken.count, time < 10_000_000 {
                let request = taken[ranCount]
                request.cost = cost(request.tenant)
                time += request.cost
                had[request.tenant, default: 0] += request.cost
                ranCount += 1
            }
            lines.ended(taken[..<ranCount])
            lines.putBack(taken[ranCount...])
            for request in taken[..<ranCount] { add(request.tenant, to: &lines) }
        }
        let share = Double(had["heavy", default: 0]) / Double(had.values.reduce(0, +))
        #expect((0.03...0.08).contains(share), "\(share); a fair share is 1/21")
    }

    /// Start-time fair queueing: tenants that wait all the time have had the same time, but for a few requests.
    @Test func tenantsThatWaitAllTheTimeGetTheSameTime() {
        for seed: UInt64 in 1...40 {
            var random = SeededRandom(seed: seed)
            let tenants = (0..<Int.random(in: 2...6, using: &random)).map { Text("\($0)") }
            var costs: [Text: Int64] = [:]
            let costMin = WriteLines<WriteRequest>.costMin
            for tenant in tenants { costs[tenant] = costMin * Int64.random(in: 1...300, using: &random) }
            var lines = WriteLines<WriteRequest>(countMax: 100_000)
            var had: [Text: Int64] = [:]
            for tenant in tenants { for _ in 0..<4 { add(tenant, to: &lines) } }
            for _ in 0..<2_000 {
                let taken = lines.take(countMax: Int.random(in: 1...4, using: &random))
                let ranCount = Int.random(in: 1...taken.count, using: &random)
                lines.putBack(taken[ranCount...])
                for request in taken[..<ranCount] {
                    let cost = costs[request.tenant, default: 0]
                    request.cost = cost
                    had[request.tenant, default: 0] += cost
                    add(request.tenant, to: &lines)
                }
                lines.ended(taken[..<ranCount])
            }
            let times = tenants.map { had[$0, default: 0] }
            // A batch takes four requests before it knows what any of them costs.
            let most = (costs.values.max() ?? 0) * 8
            let difference = (times.max() ?? 0) - (times.min() ?? 0)
            #expect(difference <= most, "\(times), seed \(seed)")
        }
    }
}
