/// The forms in which users are written to files and read from them.
enum UserFileFormat: String, CaseIterable {
    /// Our own format: a user in each line, with all their data.
    case ndjson
    case firebaseJSON = "firebase-json"
    case firebaseCSV = "firebase-csv"

    /// The format `named`, or the format of the file's name if `named` is nil.
    static func find(_ named: String?, path: String) throws(CommandError) -> UserFileFormat {
        if let named {
            guard let format = UserFileFormat(rawValue: named.lowercased()) else {
                let names = allCases.map(\.rawValue)
                throw .usage(
                    "--format is one of \(names.joined(separator: ", ")), not \"\(named)\"",
                    hint: nearest(to: named, in: names).map { "did you mean \($0)?" })
            }
            return format
        }
        switch path.split(separator: ".").last?.lowercased() {
        case "json": return .firebaseJSON
        case "csv": return .firebaseCSV
        case "ndjson", "jsonl": return .ndjson
        default:
            throw .usage(
                "\(path): the name does not say which format it is",
                hint: "add --format ndjson, firebase-json or firebase-csv")
        }
    }

    func source(_ readChunk: @escaping () throws -> [UInt8]?) -> any ImportSource {
        switch self {
        case .ndjson: UserLineSource(readChunk: readChunk)
        case .firebaseJSON: FirebaseJSONSource(reader: FirebaseExportReader(readChunk: readChunk))
        case .firebaseCSV: FirebaseCSVSource(readChunk: readChunk)
        }
    }
}

struct FirebaseJSONSource: ImportSource {
    var reader: FirebaseExportReader

    mutating func next() throws -> ImportItem? {
        do {
            guard let row = try reader.next() else { return nil }
            let parsed = try FirebaseUser(parsing: row)
            return .user(parsed.user, ignored: parsed.ignored)
        } catch let rejection as FirebaseUser.Rejection {
            return .rejected(rejection)
        }
    }
}
