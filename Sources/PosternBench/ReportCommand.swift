/// `postern-bench report`: results as one HTML file, without a server.
struct ReportCommand {
    private let paths: [String]
    private let html: String

    init(_ arguments: inout Arguments) throws {
        html = try arguments.requiredOutputFile("--html")
        try arguments.finish()
        paths = arguments.operands
        guard !paths.isEmpty else {
            throw UsageError("report: the results to show, as in report result.json --html r.html")
        }
    }

    func run() throws {
        let results = try paths.map { try ResultReader.read($0) }
        let report = HTMLReport(result: try RunResult.merged(results), generatorCount: results.count)
        try TextFile.write([UInt8](report.text.utf8), to: html)
    }
}
