/// The operations of a run, and how often each is asked for beside the others.
struct Mix: Equatable, Sendable {
    struct Share: Equatable, Sendable {
        var operation: Operation
        var weight: Int
    }

    let shares: [Share]
    /// The steps of the users. If there is a scenario, `shares` only names the operations.
    let scenario: Scenario?
    private let total: Int

    init(_ scenario: Scenario) {
        shares = scenario.operations.map { Share(operation: $0, weight: 1) }
        total = shares.count
        self.scenario = scenario
    }

    /// The operations of a trace. The trace itself has their order.
    init(_ trace: Trace) {
        shares = trace.shares
        total = shares.reduce(0) { $0 + $1.weight }
        scenario = nil
    }

    /// `get=70,verify=20`: each operation once, weights 1...1,000,000.
    init(parsing text: String) throws(UsageError) {
        var shares: [Share] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let operation = Operation(name: sides[0]), Operation.inMixes.contains(operation) else {
                let known = Operation.inMixes.map(\.name).joined(separator: ", ")
                throw UsageError("--mix: no operation \"\(sides[0])\"; there are \(known)")
            }
            guard sides.count == 2, let weight = Int(sides[1]), (1...1_000_000).contains(weight) else {
                throw UsageError("--mix: \"\(part)\" must be operation=weight, the weight 1 to 1000000")
            }
            guard !shares.contains(where: { $0.operation == operation }) else {
                throw UsageError("--mix: \(operation.name) is there twice")
            }
            shares.append(Share(operation: operation, weight: weight))
        }
        self.shares = shares
        scenario = nil
        self.total = shares.reduce(0) { $0 + $1.weight }
    }

    var operations: [Operation] { shares.map(\.operation) }
    var description: String { scenario?.name ?? sharesDescription }
    private var sharesDescription: String { shares.map { "\($0.operation.name)=\($0.weight)" }.joined(separator: ",") }

    /// Whether requests use what `seed` left, in a scenario or in a mix.
    func usesSeeded(_ operation: Operation) -> Bool {
        scenario?.usesSeeded(operation) ?? operations.contains(operation)
    }

    func pick(_ random: inout SeededGenerator) -> Operation {
        if shares.count == 1 { return shares[0].operation }
        var rest = random.below(total)
        for share in shares {
            if rest < share.weight { return share.operation }
            rest -= share.weight
        }
        preconditionFailure("\(rest) is left of a total of \(total)")
    }
}
