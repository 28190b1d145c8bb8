public import Base
public import Messages

/// The progress of an import. Every settled row is counted once: as created, replaced, skipped or rejected.
///
/// ```swift
/// let report = try await tenant.importUsers(rows, spec: spec)
/// for rejection in report.rejections { print(rejection.index, rejection.uid, rejection.reason) }
/// ```
public struct ImportReport: Sendable, Equatable {
    /// The number of users that the import created.
    public internal(set) var createdCount: Int64 = 0
    /// The number of existing users that the import replaced.
    public internal(set) var replacedCount: Int64 = 0
    /// The number of rows that were skipped because the user exists.
    public internal(set) var skippedCount: Int64 = 0
    /// The rows that the server refused, and those that no message can hold (MESSAGE_LIMIT, MESSAGE_TOO_LARGE), each
    /// with its reason. `index` counts from 0 over the whole import.
    public internal(set) var rejections: [ImportRejection] = []
    /// The names of custom claims that no token will hold, because only the server may set claims of these names.
    public internal(set) var ignoredClaims: [Text] = []
    /// The number of rows that are settled and durable. An import that broke off continues with the row of this index.
    public internal(set) var checkpoint: Int64 = 0

    /// Creates the report of an import without rows.
    public init() {}

    /// The report after an answer of a stream, if this was the report when the stream began.
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
