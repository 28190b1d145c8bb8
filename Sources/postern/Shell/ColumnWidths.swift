import Synchronization

/// The widths of a table's columns whose rows come over time. The widths of later rows are not known: each column has
/// room for a usual value, and stays as wide as its widest row so far.
final class ColumnWidths: Sendable {
    private static let usualWidth = 12
    private let soFar = Mutex<[Int]>([])

    /// The widths for the next row.
    func widened(for headers: [String], _ cells: [String]) -> [Int] {
        let needed = zip(headers, cells).map { max($0.count, $1.count, Self.usualWidth) }
        return soFar.withLock { widths in
            widths = widths.count == needed.count ? zip(widths, needed).map { max($0, $1) } : needed
            return widths
        }
    }
}
