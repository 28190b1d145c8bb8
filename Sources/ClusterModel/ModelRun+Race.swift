/// A race: some nodes are far from the engine, and the others write all the time.
extension ModelRun {
    /// Each far node has to make one change within a bound, however fast the others write. Nothing fails meanwhile.
    /// Begins when all nodes have settled, and returns the number of steps.
    mutating func race() -> Int {
        let live = nodes.indices.filter { nodes[$0].isUp && nodes[$0].stopReason == nil }
        guard live.count > 1 else { return 0 }
        far = Set(live.prefix(1 + random.below(min(3, live.count - 1))))
        distance = 2 + random.below(5)
        let (near, bound) = (live.filter { !far.contains($0) }, roundsMax)
        note("nodes \(far.sorted()) are far from the engine: \(distance) rounds")
        for index in far.sorted() { request(.set(random.below(ModelState.keyCount)), of: index) }
        let first = round
        while checker.violation == nil, far.contains(where: { !nodes[$0].hasAnsweredAll }) {
            if round - first == bound { checker.fail("far nodes are outrun for \(bound) rounds") }
            takeRound(near)
        }
        far = []
        let steps = (round - first) * stepsInRound
        return checker.violation == nil ? steps + settle() : steps
    }

    /// The bound. An entry that is outrun takes two round trips. A turn takes four; it may have to wait for the turns
    /// of the other far nodes, and for those of all near nodes, which are shorter than a round. The bound is twice as
    /// high, because the steps are random.
    private var roundsMax: Int {
        2 * (2 * outrunsMin + 4 * far.count + 4) * (2 * distance + 2) + 8 * nodes.count
    }

    private var stepsInRound: Int { 12 * nodes.count }

    /// Time enough for a near node to append an entry.
    private mutating func takeRound(_ near: [Int]) {
        round += 1
        for index in near where nodes[index].waiting.count < 2 {
            request(.set(random.below(ModelState.keyCount)), of: index)
        }
        for _ in 0..<stepsInRound {
            act(random.below(nodes.count))
            deliver()
            replicate()
        }
    }
}
