/// `postern-bench compare`: whether a server got slower between two results.
struct CompareCommand {
    private let before: [String]
    private let after: [String]
    private let threshold: Int
    private let isMarkdown: Bool

    init(_ arguments: inout Arguments) throws {
        threshold = try arguments.number("--threshold", default: 5, in: 0...1_000)
        isMarkdown = arguments.isSet("--markdown")
        try arguments.finish()
        guard arguments.operands.count == 2 else {
            throw UsageError("compare: two results, or two groups with commas between: compare a.json b.json")
        }
        let groups = arguments.operands.map { $0.split(separator: ",").map(String.init) }
        (before, after) = (groups[0], groups[1])
    }

    func run() throws {
        let comparison = try Comparison(
            before.map { try ResultReader.read($0) }, after.map { try ResultReader.read($0) },
            threshold: Double(threshold) / 100)
        try TextFile.printOut(comparison.printed(asMarkdown: isMarkdown))
        let regressions = comparison.regressions
        guard regressions.isEmpty else {
            throw BenchError(.regression, "worse: \(regressions.map(\.what).joined(separator: ", "))")
        }
    }
}
