import Base
import Reactor
import Service
import TestSupport
import Testing

/// The tables of limits in docs/limits.md: each row's limit is one of `Limits`, with the default that stands there, and
/// its metric is one that /metrics has.
@Suite struct CostTableTests {
    private struct Row: Sendable, CustomTestStringConvertible {
        let cells: [String]

        var testDescription: String { cells.joined(separator: " | ") }
    }

    private static let rows = readRows()

    private static func readRows() -> [Row] {
        let folder = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let page = String(decoding: readFile("/\(folder)/docs/limits.md") ?? [], as: UTF8.self)
        var rows: [Row] = []
        var isInside = false
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("|") else {
                isInside = false
                continue
            }
            if line.hasPrefix("| what one caller can spend |") {
                isInside = true
            } else if isInside && !line.hasPrefix("|---") {
                rows.append(Row(cells: line.split(separator: "|").map { trimmed(String($0)) }))
            }
        }
        return rows
    }

    private static func trimmed(_ text: String) -> String {
        var bytes = Array(text.utf8)[...]
        while bytes.first == UInt8(ascii: " ") { bytes.removeFirst() }
        while bytes.last == UInt8(ascii: " ") { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The words in backticks.
    private static func names(in cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }.map {
            String($0.element)
        }
    }

    @Test func everyLimitIsThereWithItsDefault() {
        #expect(Self.rows.count > 80)
        var values: [String: Any] = [:]
        let limits = Limits()
        for group in [Mirror(reflecting: limits), Mirror(reflecting: limits.administration)] {
            for child in group.children { if let label = child.label { values[label] = child.value } }
        }
        for row in Self.rows {
            guard row.cells.count == 6 else {
                Issue.record("a row without six cells: \(row)")
                continue
            }
            let names = Self.names(in: row.cells[1])
            #expect(names.count == 1, "\(row)")
            let text = Self.value(in: row.cells[2])
            for name in names {
                if let number = values[name] as? Int {
                    #expect(Self.number(text) == number, "\(name): \(text), in Limits \(number)")
                } else if let duration = values[name] as? Duration {
                    #expect(Self.duration(text) == duration, "\(name): \(text), in Limits \(duration)")
                } else {
                    Issue.record("\(name) is not in Limits")
                }
            }
        }
    }

    @Test func everyMetricIsExported() async throws {
        try await withServer { server in
            guard let route = server.instance.sidePortRoutes["/metrics"] else {
                Issue.record("there is no /metrics")
                return
            }
            let metrics = String(decoding: route().body, as: UTF8.self)
            for row in Self.rows where row.cells.count == 6 {
                let names = Self.names(in: row.cells[5])
                #expect(!names.isEmpty, "\(row)")
                for name in names {
                    let family = String(name.prefix { $0 != "{" })
                    #expect(metrics.contains("# TYPE \(family) "), "\(family) is not in /metrics")
                }
            }
        }
    }

    /// The text before the first comma with a blank: words follow it.
    private static func value(in cell: String) -> String {
        let bytes = Array(cell.utf8)
        let end = bytes.indices.dropLast().first {
            bytes[$0] == UInt8(ascii: ",") && bytes[$0 + 1] == UInt8(ascii: " ")
        }
        return String(decoding: bytes[..<(end ?? bytes.count)], as: UTF8.self)
    }

    /// `10,000`, `64 KiB`, `1 GiB`.
    private static func number(_ text: String) -> Int? {
        let parts = text.split(separator: " ")
        let digits = String((parts.first ?? "").filter { $0 != "," })
        let units = ["KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30]
        guard let value = Int(digits) else { return nil }
        guard parts.count > 1 else { return value }
        return units[String(parts[1])].map { value * $0 }
    }

    /// `500 ms`, `10 s`, `5 min`, `24 h`, `400 days`.
    private static func duration(_ text: String) -> Duration? {
        let parts = text.split(separator: " ")
        guard parts.count == 2, let value = Int64(parts[0]) else { return nil }
        switch parts[1] {
        case "ms": return .milliseconds(value)
        case "s": return .seconds(value)
        case "min": return .minutes(value)
        case "h": return .hours(value)
        case "days": return .days(value)
        default: return nil
        }
    }
}
