import Base
import JSON

/// Something that is printed: as JSON with the proto's field names, as a row, or as its id alone.
protocol Record: Sendable {
    /// Paths into `json`, such as `client.permissions.disabled_user_signup`.
    static var columns: [String] { get }
    var json: JSONValue { get }
    /// What -q prints.
    var id: String { get }
}

/// Prints records on standard output, in the format that was asked for.
struct Output: Sendable {
    enum Format: Sendable { case table, json, ndjson }

    let format: Format
    let isQuiet: Bool
    let hasHeaders: Bool
    let console: Console

    /// One record: a line per field, or a JSON object.
    func print(_ record: some Record) {
        if isQuiet { return console.print(record.id) }
        switch format {
        case .json: printPretty(record.json)
        case .ndjson: printLine(record.json)
        case .table:
            let rows = flatten(record.json, prefix: "").map { (Self.withoutUnit($0), $1) }
            let width = rows.map(\.0.count).max() ?? 0
            for (name, lines) in rows {
                // Lines that go on stand in the values' column, where nothing can be taken for a field of its own.
                for (index, line) in lines.enumerated() {
                    printTrimmed(pad(index == 0 ? name : "", to: width) + "  " + line)
                }
            }
        }
    }

    /// All records of a list: a table, a JSON array, or an object per line.
    func print<Element: Record>(_ records: [Element]) {
        if isQuiet { return records.forEach { console.print($0.id) } }
        switch format {
        case .json: printPretty(.array(records.map(\.json)))
        case .ndjson: records.forEach { printLine($0.json) }
        case .table:
            var rows = records.map(Self.cells)
            if hasHeaders { rows.insert(Self.headers(of: Element.self), at: 0) }
            let widths = Element.columns.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
            for row in rows { printRow(row, widths) }
        }
    }

    /// One of many that come over time; `isFirst` comes with the headers.
    func printNext<Element: Record>(_ record: Element, isFirst: Bool) {
        if isQuiet { return console.print(record.id) }
        guard format == .table else { return printLine(record.json) }
        let headers = Self.headers(of: Element.self)
        let cells = Self.cells(record)
        // The widths of those to come are not known: room for what is usual.
        let widths = zip(headers, cells).map { max($0.count, $1.count, 12) }
        if isFirst, hasHeaders { printRow(headers, widths) }
        printRow(cells, widths)
    }

    private func printPretty(_ json: JSONValue) { console.write(json.prettyPrinted() + [0x0A]) }

    private func printLine(_ json: JSONValue) { console.write(json.serialized() + [0x0A]) }

    private func printRow(_ cells: [String], _ widths: [Int]) {
        printTrimmed(zip(cells, widths).map { pad($0, to: $1) }.joined(separator: "  "))
    }

    private func printTrimmed(_ text: String) {
        var line = text
        while line.last == " " { line.removeLast() }
        console.print(line)
    }

    // Cells

    private static func headers<Element: Record>(of type: Element.Type) -> [String] {
        type.columns.map { path in
            withoutUnit(path.split(separator: ".").last.map(String.init) ?? path).uppercased()
        }
    }

    /// Microseconds are shown as a time.
    private static func withoutUnit(_ name: String) -> String {
        name.hasSuffix("_micros") ? String(name.dropLast("_micros".count)) : name
    }

    private static func cells<Element: Record>(_ record: Element) -> [String] {
        let json = record.json
        return Element.columns.map { path in
            let value = path.split(separator: ".").reduce(json) { $0[Text(String($1))] ?? .null }
            return cell(value, named: path)
        }
    }

    private func flatten(_ json: JSONValue, prefix: String) -> [(String, [String])] {
        guard let members = json.object else { return [(prefix, Self.lines(json, named: prefix))] }
        return members.flatMap { member in
            let name = prefix.isEmpty ? member.name.string : "\(prefix).\(member.name)"
            // Claims are the application's own: they stay as they are.
            if member.name.string.hasSuffix("_json") { return [(name, [Self.cell(member.value, named: name)])] }
            return flatten(member.value, prefix: name)
        }
    }

    /// A text's lines without the empty ones at its end; anything else is one line.
    private static func lines(_ value: JSONValue, named name: String) -> [String] {
        guard case .string(let text) = value else { return [cell(value, named: name)] }
        var lines = text.string.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        while lines.last?.isEmpty == true { lines.removeLast() }
        return lines.isEmpty ? ["-"] : lines.map { printable(String($0)) }
    }

    private static func cell(_ value: JSONValue, named name: String) -> String {
        switch value {
        case .null: return "-"
        case .string(let text): return text.isEmpty ? "-" : printable(text.string)
        case .bool(let value): return value ? "true" : "false"
        case .integer(let value) where name.hasSuffix("_micros"):
            return value == 0 ? "-" : Timestamp(microseconds: value).rfc3339
        case .integer(let value): return String(value)
        case .double(let value):
            return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
        case .array(let values):
            // An object in a list shows its first member, which names it.
            let cells = values.map { cell($0.object?.first?.value ?? $0, named: name) }
            return cells.isEmpty ? "-" : cells.joined(separator: ",")
        case .object: return printable(String(decoding: value.serialized(), as: UTF8.self))
        }
    }

    /// A name that an end user chose must not move the cursor of an admin's terminal.
    static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
                        || (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
                        ? "\u{FFFD}" : scalar
                }))
    }

    private func pad(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
