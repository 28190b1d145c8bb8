import Synchronization

/// The rows of a table that come over time. The widths of later rows are not known: each column has room for a usual
/// value, and stays as wide as its widest row so far.
final class RowsSoFar: Sendable {
    private static let usualWidth = 12
    private let hasBegun = Mutex(false)
    private let widths = Mutex<[Int]>([])
    private let fixedColumns = Mutex<[String]?>(nil)

    /// Returns true when it is called for the first row.
    func beginRow() -> Bool {
        hasBegun.withLock { hasBegun in
            defer { hasBegun = true }
            return !hasBegun
        }
    }

    /// The columns of all rows: those that `ofFirst` returns for the first row.
    func columns(_ ofFirst: () -> [String]) -> [String] {
        if let columns = fixedColumns.withLock(\.self) { return columns }
        let columns = ofFirst()
        fixedColumns.withLock { $0 = columns }
        return columns
    }

    /// The widths for the next row.
    func widened(for headers: [String], _ cells: [String]) -> [Int] {
        let needed = zip(headers, cells).map { max($0.count, $1.count, Self.usualWidth) }
        return widths.withLock { widths in
            widths = widths.count == needed.count ? zip(widths, needed).map { max($0, $1) } : needed
            return widths
        }
    }
}
