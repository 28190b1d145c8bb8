import Base
import JSON
import Messages

/// The counts of a file's rows by their outcome.
struct ImportTotals: Equatable {
    /// The rows that earlier runs of this import settled.
    let before: Settled
    /// The rows that were read, of the whole file.
    var readCount: Int64 = 0
    /// The rows that this run sent.
    var sentCount: Int64 = 0
    private var answer = UsersImportResponse()
    private var rejectedByServer: Int64 = 0
    private var ignoredClaims: [Text] = []
    /// Rows of the file that were never sent, from 1.
    private var unsentRows: [Int64] = []

    /// The counts of the settled rows at the beginning of a file.
    struct Settled: Equatable {
        var rowCount: Int64 = 0
        var createdCount: Int64 = 0
        var replacedCount: Int64 = 0
        var skippedCount: Int64 = 0
        var rejectedCount: Int64 = 0
    }

    init(before: Settled = Settled()) { self.before = before }

    /// The server counts over the whole stream, and names the rejected rows of one batch.
    mutating func note(_ answer: UsersImportResponse) {
        rejectedByServer += Int64(answer.rejections.count)
        self.answer = answer
    }

    /// The names that were not reported before.
    mutating func newIgnoredClaims(_ answer: UsersImportResponse) -> [Text] {
        let new = answer.ignoredClaims.filter { !ignoredClaims.contains($0) }
        ignoredClaims += new
        return new
    }

    /// Notes that the row that was just read cannot be sent.
    mutating func noteLocalRejection() { unsentRows.append(readCount) }

    /// Rows sent by this run that are durable.
    var checkpoint: Int64 { answer.checkpoint }

    /// The row of the file, from 1, of the sent row with this `index`, from 0.
    func row(ofSent index: Int64) -> Int64 {
        var row = before.rowCount + index + 1
        for unsent in unsentRows {
            guard unsent <= row else { break }
            row += 1
        }
        return row
    }

    /// The counts of the settled rows, from the beginning of the file.
    var settled: Settled {
        let rowCount = row(ofSent: checkpoint) - 1
        return Settled(
            rowCount: rowCount, createdCount: before.createdCount + answer.createdCount,
            replacedCount: before.replacedCount + answer.replacedCount,
            skippedCount: before.skippedCount + answer.skippedCount,
            rejectedCount: before.rejectedCount + rejectedByServer + Int64(unsentRows.count { $0 <= rowCount }))
    }

    var rejectedCount: Int64 { settled.rejectedCount }

    var isComplete: Bool {
        let settled = settled
        return readCount == settled.createdCount + settled.replacedCount + settled.skippedCount + settled.rejectedCount
    }

    var summary: String {
        let settled = settled
        return "read \(readCount), created \(settled.createdCount), replaced \(settled.replacedCount), "
            + "skipped \(settled.skippedCount), rejected \(settled.rejectedCount)"
    }
}

extension ImportTotals: Record {
    static let columns = ["read", "created", "replaced", "skipped", "rejected"]

    var id: String { summary }

    var json: JSONValue {
        let settled = settled
        return [
            "read": .integer(readCount), "created": .integer(settled.createdCount),
            "replaced": .integer(settled.replacedCount), "skipped": .integer(settled.skippedCount),
            "rejected": .integer(settled.rejectedCount),
        ]
    }
}
