import Testing

@testable import ClusterModel

/// Some runs of the model. `tools/check` makes ten million steps.
@Suite struct ClusterModelTests {
    private static func search(_ words: [String], _ mistake: Mistake? = nil) throws -> (ModelSearch, ModelSearch.Found?)
    {
        var search = ModelSearch(try ModelOptions(words[...]), mistake: mistake)
        let found = search.search()
        return (search, found)
    }

    @Test func `No order of events breaks a promise`() throws {
        let (search, found) = try Self.search(["--seeds", "60", "--steps", "3000"])
        #expect(found == nil)
        // The runs must contain enough of every outcome.
        let counts = search.counts
        #expect(counts.acknowledged > 1_000 && counts.refused > 1_000 && counts.unknown > 50 && counts.forks > 1)
        #expect(counts.turns > 100)
    }

    @Test(arguments: Mistake.allCases) func `Every mistake is found`(_ mistake: Mistake) throws {
        let (search, found) = try Self.search(["--seeds", "100"], mistake)
        #expect(found != nil, "\(mistake) in \(search.stepsTaken) steps")
    }

    @Test func `A seed decides a run`() throws {
        func lines(_ seed: String) throws -> [String] {
            var lines: [String] = []
            var search = ModelSearch(
                try ModelOptions(["--first", seed, "--seeds", "1", "--steps", "500"]), mistake: nil)
            search.trace = { lines.append($0) }
            #expect(search.search() == nil)
            return lines
        }
        let (first, again, other) = (try lines("7"), try lines("7"), try lines("8"))
        #expect(first.count > 300 && again == first && other != first)
    }

    @Test(arguments: [["--seeds"], ["--seeds", "0"], ["--steps", "x"], ["--mistake", "none"], ["seeds", "1"]])
    func `Words that it does not know are refused`(_ words: [String]) {
        #expect(throws: ModelOptions.UsageError.self) { try ModelOptions(words[...]) }
    }
}
