import Base
import Glibc
import JSON

/// A file with the progress of an import: how much of the users' file is settled on the server.
struct ImportCheckpoint {
    let path: String
    /// The size of the users' file, by which the file is recognised.
    let byteCount: Int64
    let settled: ImportTotals.Settled

    /// Reads the file, if it is there. `source` is the users' file.
    init(_ path: String, of source: Int32) throws(CommandError) {
        var status = stat()
        guard fstat(source, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .usage("--checkpoint needs a file to read: a pipe cannot be read again")
        }
        self.path = path
        byteCount = Int64(status.st_size)
        guard File.exists(path) else {
            settled = ImportTotals.Settled()
            return
        }
        guard let json = try? JSONValue(parsing: File.read(path)), let size = json["bytes"]?.integer,
            let rows = json["rows"]?.integer, let created = json["created"]?.integer,
            let replaced = json["replaced"]?.integer, let skipped = json["skipped"]?.integer,
            let rejected = json["rejected"]?.integer, rows >= 0
        else { throw .usage("\(path): does not say how far an import came") }
        guard size == byteCount else { throw .usage("\(path): is of another file: this one has another size") }
        settled = ImportTotals.Settled(
            rowCount: rows, createdCount: created, replacedCount: replaced, skippedCount: skipped,
            rejectedCount: rejected)
    }

    func note(_ settled: ImportTotals.Settled) throws(CommandError) {
        let json: JSONValue = [
            "bytes": .integer(byteCount), "rows": .integer(settled.rowCount),
            "created": .integer(settled.createdCount), "replaced": .integer(settled.replacedCount),
            "skipped": .integer(settled.skippedCount), "rejected": .integer(settled.rejectedCount),
        ]
        try File.replace(path, with: json.serialized() + [0x0A])
    }

    /// Removes the file, because the import is complete.
    func remove() { unlink(path) }
}
