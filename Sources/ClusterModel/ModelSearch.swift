/// Many runs, one after the other, until one breaks a promise.
struct ModelSearch {
    struct Found: Equatable {
        let seed: UInt64
        let text: String
    }

    let firstSeed: UInt64
    let seedCount: Int
    let stepCount: Int
    let nodeCount: Int?
    let mistake: Mistake?
    var trace: ((String) -> Void)?

    private(set) var stepsTaken = 0
    private(set) var counts = ModelChecker.Counts()

    init(_ options: ModelOptions, mistake: Mistake?) {
        firstSeed = options.firstSeed
        seedCount = options.seedCount
        stepCount = options.stepCount
        nodeCount = options.nodeCount
        self.mistake = mistake
    }

    /// The first broken promise; nil if no run breaks one.
    mutating func search() -> Found? {
        for seed in firstSeed..<firstSeed + UInt64(seedCount) {
            var run = ModelRun(seed: seed, mistake: mistake, nodeCount: nodeCount)
            if seed == firstSeed { run.trace = trace }
            stepsTaken += run.run(steps: stepCount)
            if run.checker.violation == nil, seed.isMultiple(of: 4) { stepsTaken += run.race() }
            counts += run.checker.counts
            if let violation = run.checker.violation { return Found(seed: seed, text: violation) }
        }
        return nil
    }
}
