/// The files to which a run writes its result, besides stdout.
struct ResultFiles {
    private let json: String?
    private let histogramLog: String?
    private let csv: String?
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        json = try arguments.outputFile("--json")
        histogramLog = try arguments.outputFile("--hdr")
        csv = try arguments.outputFile("--csv")
        format = try arguments.choice("-o", default: OutputFormat.table)
    }

    /// Writes all that can be written, whatever fails: a full disk must not take the figures from the terminal.
    func write(_ result: RunResult) throws {
        var failure: (any Error)?
        func attempt(_ body: () throws -> Void) {
            do { try body() } catch { failure = failure ?? error }
        }
        attempt {
            try TextFile.printOut(
                format == .table ? RunTable(result: result).text : String(decoding: result.encoded, as: UTF8.self))
        }
        if let json { attempt { try TextFile.write(result.encoded, to: json) } }
        if let histogramLog {
            attempt { try TextFile.write([UInt8](HistogramLog(result: result).text.utf8), to: histogramLog) }
        }
        if let csv { attempt { try TextFile.write([UInt8](SeriesCSV(result: result).text.utf8), to: csv) } }
        if let failure { throw failure }
    }
}
