import Base
import Messages

/// Splits a file of `firebase auth:export --format csv` into lines of cells (RFC 4180).
struct FirebaseCSVSource: ImportSource {
    private static let rowByteCountMax = FirebaseExportReader.userByteCountMax

    private enum State { case plain, quoted, quoteInQuoted, skipping }

    private let readChunk: () throws -> [UInt8]?
    private var chunk: ArraySlice<UInt8> = []
    private var state = State.plain
    private var cells: [[UInt8]] = []
    private var cell: [UInt8] = []
    private var byteCount = 0
    /// The number of quotes after a backslash in the column of claims.
    private var quotesBehindBackslash: Int?

    init(readChunk: @escaping () throws -> [UInt8]?) { self.readChunk = readChunk }

    mutating func next() throws -> ImportItem? {
        while true {
            while let byte = chunk.popFirst() {
                if let row = take(byte) { return Self.item(row) }
            }
            if let more = try readChunk() {
                chunk = more[...]
                continue
            }
            switch state {
            case .quoted: throw CommandError("the file ends in the middle: it is not complete")
            case .skipping:
                // The last row was too long, and no line feed follows it.
                (state, byteCount) = (.plain, 0)
                return Self.item(nil)
            case .plain, .quoteInQuoted: return endRow().map { Self.item($0) }
            }
        }
    }

    /// The row that ended with this byte: its cells, or nil for one that was too long.
    private mutating func take(_ byte: UInt8) -> [[UInt8]]?? {
        byteCount += 1
        if byteCount > Self.rowByteCountMax, state != .skipping {
            state = .skipping
            (cells, cell) = ([], [])
        }
        switch state {
        case .skipping:
            guard byte == 0x0A else { return nil }
            (state, byteCount) = (.plain, 0)
            return .some(nil)
        case .plain, .quoteInQuoted: return takePlain(byte)
        case .quoted:
            takeQuoted(byte)
            return nil
        }
    }

    private mutating func takePlain(_ byte: UInt8) -> [[UInt8]]?? {
        switch byte {
        case UInt8(ascii: "\"") where state == .quoteInQuoted:
            cell.append(byte)
            state = .quoted
        case UInt8(ascii: "\"") where cell.isEmpty: state = .quoted
        case UInt8(ascii: ","):
            cells.append(cell)
            (cell, state) = ([], .plain)
        case 0x0A: return endRow().map { .some($0) }
        case 0x0D: break
        default:
            cell.append(byte)
            state = .plain
        }
        return nil
    }

    private mutating func takeQuoted(_ byte: UInt8) {
        let isQuote = byte == UInt8(ascii: "\"")
        guard cells.count == FirebaseCSV.claimsColumn else {
            if isQuote { state = .quoteInQuoted } else { cell.append(byte) }
            return
        }
        // With an odd number of quotes after a backslash, the first one stands alone. Other programs double it as well.
        if isQuote, quotesBehindBackslash != nil || cell.last == UInt8(ascii: "\\") {
            quotesBehindBackslash = (quotesBehindBackslash ?? 0) + 1
            return
        }
        if let count = quotesBehindBackslash {
            cell += [UInt8](repeating: UInt8(ascii: "\""), count: count % 2 == 1 ? 1 + count / 2 : count / 2)
            quotesBehindBackslash = nil
        }
        if isQuote { state = .quoteInQuoted } else { cell.append(byte) }
    }

    private mutating func endRow() -> [[UInt8]]? {
        defer { (cells, cell, state, byteCount) = ([], [], .plain, 0) }
        guard !cells.isEmpty || !cell.isEmpty else { return nil }
        return cells + [cell]
    }

    private static func item(_ row: [[UInt8]]?) -> ImportItem {
        guard let row else {
            return .rejected(.malformed("the row is above \(rowByteCountMax) bytes"))
        }
        do throws(FirebaseUser.Rejection) {
            return .user(try ImportUser(firebaseCSV: row), ignored: [])
        } catch {
            return .rejected(error)
        }
    }
}

extension ImportUser {
    init(firebaseCSV row: [[UInt8]]) throws(FirebaseUser.Rejection) {
        let cells = try FirebaseCSVCells(row)
        self.init(
            uid: cells.uid, email: try cells.text(1), emailVerified: try cells.bool(2), displayName: try cells.text(5),
            photoURL: try cells.text(6), phoneNumber: try cells.text(25), disabled: try cells.bool(26))
        (createdAtMicros, lastSignInAtMicros) = (try cells.micros(23), try cells.micros(24))
        (passwordHash, salt) = (Secret(try cells.base64(3)), try cells.base64(4))
        let claims = try cells.text(FirebaseCSV.claimsColumn)
        customClaimsJSON = claims == "{}" ? [] : claims.bytes
        for (id, column) in FirebaseCSV.providers where row.count > column + 3 {
            let rawID = try cells.text(column)
            if rawID.isEmpty { continue }
            providers.append(
                ProviderInfo(
                    providerID: id, rawID: rawID, email: try cells.text(column + 1),
                    displayName: try cells.text(column + 2), photoURL: try cells.text(column + 3)))
        }
    }
}

/// One line, read cell by cell.
private struct FirebaseCSVCells {
    private let row: [[UInt8]]
    let uid: Text

    init(_ row: [[UInt8]]) throws(FirebaseUser.Rejection) {
        self.row = row
        uid = row.first.flatMap { Text(validating: Array($0.trimmed())) } ?? .empty
        guard FirebaseCSV.widths.contains(row.count) else {
            throw .malformed("the row has \(row.count) columns; Firebase writes 26 to 28, or 52", uid: uid)
        }
    }

    private func wrong(_ column: Int, _ expected: String) -> FirebaseUser.Rejection {
        .malformed("column \(column) is no \(expected)", uid: uid)
    }

    /// Empty for a column that is not there.
    func text(_ column: Int) throws(FirebaseUser.Rejection) -> Text {
        guard column < row.count else { return .empty }
        guard let text = Text(validating: Array(row[column].trimmed())) else { throw wrong(column, "UTF-8") }
        return text
    }

    func bool(_ column: Int) throws(FirebaseUser.Rejection) -> Bool {
        switch try text(column) {
        case "true": return true
        case "false", "": return false
        default: throw wrong(column, "true or false")
        }
    }

    func micros(_ column: Int) throws(FirebaseUser.Rejection) -> Int64 {
        let text = try text(column)
        if text.isEmpty { return 0 }
        guard let time = Int64(text.string), time >= 0, time < Int64.max / 1_000 else {
            throw wrong(column, "number of milliseconds")
        }
        return time * 1_000
    }

    func base64(_ column: Int) throws(FirebaseUser.Rejection) -> [UInt8] {
        guard let bytes = decodeLenientBase64(try text(column)) else { throw wrong(column, "base64") }
        return bytes
    }
}
