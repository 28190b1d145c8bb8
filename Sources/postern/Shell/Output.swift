import Base
import JSON

/// A value that is printed: as JSON with the proto's field names, as a row, or as its id alone.
protocol Record: Sendable {
    /// Paths into `json`, such as `client.permissions.disabled_user_signup`.
    static var columns: [String] { get }
    var json: JSONValue { get }
    /// The text that -q prints.
    var id: String { get }
    /// The rows of a table of the usual columns: one row of `json`, unless the record has several.
    var rows: [JSONValue] { get }
    /// The JSON of a record that has every object which other records lack. Nil: all records have the same fields.
    static var whole: JSONValue? { get }
}

extension Record {
    var rows: [JSONValue] { [json] }
    static var whole: JSONValue? { nil }
}

/// Prints records on standard output, in the format that was asked for.
struct Output: Sendable {
    enum Format: String, Sendable, CaseIterable {
        case table
        /// A table with every field.
        case wide
        case json, ndjson, csv
        /// The ids alone, as with -q, but with the messages.
        case name

        /// True if a program reads standard output, and perhaps standard error as well.
        var isForPrograms: Bool { self == .json || self == .ndjson }
    }

    let format: Format
    /// The paths in --fields. Nil: the usual ones.
    let fields: [String]?
    let isQuiet: Bool
    let hasHeaders: Bool
    /// What is printed is the answer of a change, which cannot be asked for again.
    let isOfChange: Bool
    let console: Console
    /// The names in --fields that a record does not have.
    let unknownFields = UnknownFields()
    private let rowsSoFar = RowsSoFar()

    init(
        format: Format, fields: [String]? = nil, isQuiet: Bool, hasHeaders: Bool, isOfChange: Bool = false,
        console: Console
    ) {
        self.format = format
        self.fields = fields
        self.isQuiet = isQuiet
        self.hasHeaders = hasHeaders
        self.isOfChange = isOfChange
        self.console = console
    }

    /// Whether a list is one document: an array in JSON, or CSV whose header has the columns of all records.
    var isOneDocument: Bool { !isQuiet && (format == .json || format == .csv) }
    /// Whether text for people may be printed as it is.
    var isForPeople: Bool { !isQuiet && format == .table && fields == nil }

    /// One record: a line per field, or a JSON object.
    func print(_ record: some Record) {
        if isQuiet || format == .name {
            // A tenant's hooks, for example, have no id.
            if !record.id.isEmpty { printID(record.id) }
            return
        }
        switch format {
        case .json: printPretty(shown(record))
        case .ndjson: printLine(shown(record))
        case .csv: print([record])
        case .table, .wide, .name:
            let rows = flatten(shown(record), prefix: "").map { (Self.withoutUnit($0), $1) }
            let width = rows.map(\.0.count).max() ?? 0
            for (name, lines) in rows {
                // Further lines of a value stand in the values' column, where nobody can take them for another field.
                for (index, line) in lines.enumerated() {
                    printTrimmed(pad(index == 0 ? name : "", to: width) + "  " + line)
                }
            }
        }
    }

    /// All records of a list: a table, a JSON array, an object per line, or lines of CSV.
    func print<Element: Record>(_ records: [Element]) {
        if isQuiet || format == .name { return records.forEach { printID($0.id) } }
        switch format {
        case .json: printPretty(.array(shown(records)))
        case .ndjson: shown(records).forEach(printLine)
        case .csv:
            let values = shown(records)
            printCSV(values, values.isEmpty ? Element.columns : Self.leaves(of: values))
        case .table, .wide, .name:
            let values = fields == nil && format == .table ? records.flatMap(\.rows) : records.map(\.json)
            let columns = columns(of: values, usual: Element.columns)
            var rows = values.map { Self.cells(of: $0, columns) }
            if hasHeaders { rows.insert(Self.headers(columns), at: 0) }
            let widths = columns.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
            for row in rows { printRow(row, widths) }
        }
    }

    /// Prints one record of many that come over time. The first one comes with the headers, and all have the same
    /// columns. As `json` the records are printed as `ndjson`, because nobody waits for the end of what is watched.
    func printNext<Element: Record>(_ record: Element) {
        let isFirst = rowsSoFar.beginRow()
        if isQuiet || format == .name { return printID(record.id) }
        switch format {
        case .json, .ndjson: return printLine(shown(record))
        case .csv:
            let columns = rowsSoFar.columns { Self.leaves(of: [Element.whole ?? record.json]) }
            return printCSV([shown(record)], columns, hasHeaders: isFirst && hasHeaders)
        case .table, .wide, .name: break
        }
        // The fields that were asked for are looked up in each record.
        let columns =
            fields != nil
            ? self.columns(of: [record.json], usual: Element.columns)
            : rowsSoFar.columns { self.columns(of: [Element.whole ?? record.json], usual: Element.columns) }
        let headers = Self.headers(columns)
        let cells = Self.cells(of: record.json, columns)
        let widths = rowsSoFar.widened(for: headers, cells)
        if isFirst, hasHeaders { printRow(headers, widths) }
        printRow(cells, widths)
    }

    // CSV

    /// Prints CSV (RFC 4180): the columns `all`, or the fields that were asked for. A cell of an object, which is a
    /// column of its own where another record has none there, is its JSON.
    private func printCSV(_ values: [JSONValue], _ all: [String], hasHeaders: Bool? = nil) {
        let columns = fields.map { values.first?.object?.map(\.name.string) ?? $0 } ?? all
        func line(_ cells: [String]) {
            console.write([UInt8]((cells.map(Self.quoted).joined(separator: ",") + "\r\n").utf8))
        }
        if hasHeaders ?? self.hasHeaders { line(columns) }
        for json in values {
            line(
                columns.map { path in
                    // With --fields each path is a member of its own, whose name includes the dots.
                    let value = fields == nil ? Self.find(path, in: json) : json[Text(path)]
                    switch value {
                    case .string(let text): return text.string
                    case .array(let elements) where elements.allSatisfy({ $0.text != nil }):
                        return elements.compactMap(\.string).joined(separator: " ")
                    case .array, .object: return String(decoding: value?.serialized() ?? [], as: UTF8.self)
                    case .null, nil: return ""
                    case .some(let other): return String(decoding: other.serialized(), as: UTF8.self)
                    }
                })
        }
    }

    private static func quoted(_ cell: String) -> String {
        let needsQuotes = cell.utf8.contains { $0 == 0x22 || $0 == 0x2C || $0 == 0x0A || $0 == 0x0D }
        return needsQuotes ? "\"" + cell.replacing("\"", with: "\"\"") + "\"" : cell
    }

    // Lines

    private func printPretty(_ json: JSONValue) { console.write(Self.printable(json: json.prettyPrinted()) + [0x0A]) }

    private func printLine(_ json: JSONValue) { console.write(Self.printable(json: json.serialized()) + [0x0A]) }

    /// Prints one line, whatever the id is: a uid with a line feed must not look like two users to a script.
    private func printID(_ id: String) { console.print(Self.printable(id)) }

    private func printRow(_ cells: [String], _ widths: [Int]) {
        printTrimmed(zip(cells, widths).map { pad($0, to: $1) }.joined(separator: "  "))
    }

    private func printTrimmed(_ text: String) {
        var line = text
        while line.last == " " { line.removeLast() }
        console.print(line)
    }

    // Cells

    private static func headers(_ columns: [String]) -> [String] {
        columns.map { path in
            withoutUnit(path.split(separator: ".").last.map(String.init) ?? path).uppercased()
        }
    }

    /// Microseconds are shown as a time.
    private static func withoutUnit(_ name: String) -> String {
        name.hasSuffix("_micros") ? String(name.dropLast("_micros".count)) : name
    }

    private static func cells(of json: JSONValue, _ columns: [String]) -> [String] {
        columns.map { path in cell(find(path, in: json) ?? .null, named: path) }
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

    private func pad(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
