/// Reads our own files of users (`UserLines`) line by line.
struct UserLineSource: ImportSource {
    private let readChunk: () throws -> [UInt8]?
    private var chunk: ArraySlice<UInt8> = []
    private var line: [UInt8] = []
    private var isTooLong = false
    private var isAtEnd = false
    /// The rows since the header.
    private var rowCount: Int64 = 0
    /// The header says that a last line with the number of users follows.
    private var awaitsCount = false

    init(readChunk: @escaping () throws -> [UInt8]?) { self.readChunk = readChunk }

    mutating func next() throws -> ImportItem? {
        while let line = try nextLine() {
            guard let line else {
                return rejected(.malformed("the line is above \(Self.lineByteCountMax) bytes"))
            }
            if line.trimmed().isEmpty { continue }
            let read: UserLineReader.Line
            do throws(FirebaseUser.Rejection) {
                read = try UserLineReader(line).read()
            } catch {
                return rejected(error)
            }
            switch read {
            case .item(let item):
                if case .user = item { rowCount += 1 }
                return item
            case .header(let endsWithCount):
                try checkComplete()
                (rowCount, awaitsCount) = (0, endsWithCount)
            case .end(let userCount): try end(userCount: userCount)
            }
        }
        try checkComplete()
        return nil
    }

    private mutating func rejected(_ rejection: FirebaseUser.Rejection) -> ImportItem {
        rowCount += 1
        return .rejected(rejection)
    }

    private func checkComplete() throws(CommandError) {
        guard !awaitsCount else {
            throw CommandError(
                "the file ends in the middle: it is not complete",
                hint: "take the whole file, and import it with --on-conflict skip")
        }
    }

    /// Takes the last line. A line that is no user may have been one: so only too few rows are wrong.
    private mutating func end(userCount: Int64) throws(CommandError) {
        guard rowCount >= userCount else {
            throw CommandError(
                "the file is not complete: it has \(rowCount) of \(userCount) users",
                hint: "take the whole file, and import it with --on-conflict skip;"
                    + " if you took users out yourself, take out the file's first and last line as well")
        }
        (rowCount, awaitsCount) = (0, false)
    }

    private static let lineByteCountMax = FirebaseExportReader.userByteCountMax

    /// Nil at the end; an inner nil for a line that is too long.
    private mutating func nextLine() throws -> [UInt8]?? {
        while true {
            if let end = chunk.firstIndex(of: 0x0A) {
                append(chunk[..<end])
                chunk = chunk[(end + 1)...]
                return endLine()
            }
            append(chunk)
            guard !isAtEnd, let more = try readChunk() else {
                isAtEnd = true
                chunk = []
                return line.isEmpty && !isTooLong ? nil : endLine()
            }
            chunk = more[...]
        }
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>) {
        isTooLong = isTooLong || line.count + bytes.count > Self.lineByteCountMax
        if isTooLong { line = [] } else { line += bytes }
    }

    private mutating func endLine() -> [UInt8]?? {
        defer { (line, isTooLong) = ([], false) }
        return .some(isTooLong ? nil : line)
    }
}
