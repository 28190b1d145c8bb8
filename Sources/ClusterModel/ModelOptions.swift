/// The options of `cluster-model`.
struct ModelOptions {
    static let help = """
        Looks for an order of events in which the cluster's protocol breaks a promise.

          --seeds N        runs, each decided by a seed (default 1000)
          --first SEED     the first seed; the others follow (default 1)
          --steps N        events in each run (default 10000)
          --nodes N        nodes in each run (default 2 to 5, as the seed decides)
          --mistake NAME   with a mistake on purpose, which must be found; "all" for each in turn:
                           \(Mistake.allCases.map(\.rawValue).joined(separator: "\n                   "))
          --trace          prints every event of the first run

        Status 0: no promise was broken, and each mistake was found. 1: otherwise; the line names the seed. 64: usage.

        """

    var seedCount = 1_000
    var firstSeed: UInt64 = 1
    var stepCount = 10_000
    var nodeCount: Int?
    var mistakes: [Mistake] = []
    var isTraced = false

    struct UsageError: Error {
        let text: String
    }

    init(_ words: ArraySlice<String>) throws(UsageError) {
        var words = words
        while let name = words.popFirst() {
            if name == "--trace" {
                isTraced = true
                continue
            }
            guard let value = words.popFirst() else { throw UsageError(text: "\(name) has no value") }
            switch name {
            case "--seeds": seedCount = try Self.number(value, 1...10_000_000)
            case "--first": firstSeed = UInt64(try Self.number(value, 0...Int.max / 2))
            case "--steps": stepCount = try Self.number(value, 1...1_000_000_000)
            case "--nodes": nodeCount = try Self.number(value, 2...1_000)
            case "--mistake": mistakes = try Self.mistakes(value)
            default: throw UsageError(text: "\(name) is no option")
            }
        }
    }

    private static func number(_ text: String, _ range: ClosedRange<Int>) throws(UsageError) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw UsageError(text: "\(text) is not a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private static func mistakes(_ name: String) throws(UsageError) -> [Mistake] {
        if name == "all" { return Mistake.allCases }
        guard let mistake = Mistake(rawValue: name) else { throw UsageError(text: "there is no mistake \(name)") }
        return [mistake]
    }
}
