public import Base
public import Messages

/// What became of an import's rows so far. Every settled row is counted once: created, replaced, skipped or rejected.
public struct ImportReport: Sendable, Equatable {
    public internal(set) var createdCount: Int64 = 0
    public internal(set) var replacedCount: Int64 = 0
    public internal(set) var skippedCount: Int64 = 0
    /// The rows that were refused, with the reason; `index` counts from 0 over the whole import.
    public internal(set) var rejections: [ImportRejection] = []
    /// Names of custom claims that were brought in and go into no token, because only the server says them.
    public internal(set) var ignoredClaims: [Text] = []
    /// How many rows are settled and durable: an import that broke off goes on behind them.
    public internal(set) var checkpoint: Int64 = 0

    public init() {}

    /// With the answer to a batch of a stream that began when this was the report.
    func adding(_ answer: UsersImportResponse, to rejections: [ImportRejection]) -> ImportReport {
        var report = self
        report.createdCount += answer.createdCount
        report.replacedCount += answer.replacedCount
        report.skippedCount += answer.skippedCount
        report.rejections = rejections
        for var rejection in answer.rejections {
            rejection.index += checkpoint
            report.rejections.append(rejection)
        }
        report.ignoredClaims += answer.ignoredClaims.filter { !report.ignoredClaims.contains($0) }
        report.checkpoint += answer.checkpoint
        return report
    }
}
