import Glibc

func complain(_ text: String) {
    let line = Array("cluster-model: \(text)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
}

do {
    let words = CommandLine.arguments.dropFirst()
    if words.contains("--help") {
        print(ModelOptions.help, terminator: "")
        exit(0)
    }
    exit(report(try ModelOptions(words)))
} catch {
    complain("\(error.text); see --help")
    exit(64)
}

/// Prints a line for each search. Returns the program's status.
func report(_ options: ModelOptions) -> Int32 {
    guard !options.mistakes.isEmpty else { return reportSound(options) }
    var status: Int32 = 0
    for mistake in options.mistakes {
        var search = ModelSearch(options, mistake: mistake)
        let found = search.search()
        let said = found.map { "found with seed \($0.seed): \($0.text)" } ?? "NOT FOUND"
        print("\(mistake.rawValue): \(said) (\(search.stepsTaken) steps)")
        if found == nil { status = 1 }
    }
    return status
}

private func reportSound(_ options: ModelOptions) -> Int32 {
    var search = ModelSearch(options, mistake: nil)
    if options.isTraced { search.trace = { print($0) } }
    if let found = search.search() {
        complain("seed \(found.seed): \(found.text)")
        return 1
    }
    print("\(search.stepsTaken) steps of \(options.seedCount) runs break no promise: \(search.counts.description)")
    return 0
}
