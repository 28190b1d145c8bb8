import Base
import Crypto
import Glibc
import JSON

/// A file with the progress of an import: how much of the users' file is settled on the server.
struct ImportCheckpoint {
    /// The tenant that an import brings users to, and the form that it reads them in.
    struct Target {
        let tenant: ServedTenant
        let format: UserFileFormat
    }

    let path: String
    let settled: ImportTotals.Settled
    private let target: Target
    /// The size and the digest of the users' file, by which the file is recognised.
    private let byteCount: Int64
    private let digest: Text

    /// Reads the file, if it is there. `source` is the users' file.
    init(_ path: String, of source: Int32, to target: Target) throws(CommandError) {
        try File.checkName(path)
        var status = stat()
        guard fstat(source, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .usage("--checkpoint needs a file to read: a pipe cannot be read again")
        }
        self.path = path
        self.target = target
        byteCount = Int64(status.st_size)
        digest = try Self.digest(of: source)
        guard File.exists(path) else {
            settled = ImportTotals.Settled()
            return
        }
        guard let json = try? JSONValue(parsing: File.read(path)), let size = json["bytes"]?.integer,
            let rows = json["rows"]?.integer, let created = json["created"]?.integer,
            let replaced = json["replaced"]?.integer, let skipped = json["skipped"]?.integer,
            let rejected = json["rejected"]?.integer, rows >= 0
        else { throw .usage("\(path): does not say how far an import came") }
        try Self.check(json, of: target, path: path)
        guard size == byteCount else { throw .usage("\(path): is of another file: this one has another size") }
        guard json["digest"]?.text == digest else {
            throw .usage("\(path): is of another file: this one has other contents")
        }
        settled = ImportTotals.Settled(
            rowCount: rows, createdCount: created, replacedCount: replaced, skippedCount: skipped,
            rejectedCount: rejected)
    }

    /// Refuses a checkpoint of an import to another target.
    private static func check(_ json: JSONValue, of target: Target, path: String) throws(CommandError) {
        let anew = "remove it, and import the whole file with --on-conflict skip"
        guard let tenant = ServedTenant(in: json), let format = json["format"]?.string else {
            throw .usage(
                "\(path): does not say into which tenant of which server its import goes: an earlier version wrote it",
                hint: anew)
        }
        try tenant.check(is: target.tenant, path: path, work: "an import into", anew: anew)
        guard format == target.format.rawValue else {
            throw .usage("\(path): is of an import of \(format), and this one is of \(target.format.rawValue)")
        }
    }

    /// A digest of the whole file: SHA-256 of the digest before and the next 64 KiB, so that only these are in memory.
    private static func digest(of source: Int32) throws(CommandError) -> Text {
        var digest: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        var offset = 0
        while true {
            var filled = 0
            while filled < piece.count {
                let count = piece.withUnsafeMutableBytes { buffer in
                    pread(source, buffer.baseAddress.map { $0 + filled }, buffer.count - filled, off_t(offset + filled))
                }
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { throw CommandError.system("the users' file") }
                if count == 0 { break }
                filled += count
            }
            guard filled > 0 else { return Hex.encode(digest) }
            digest = Digest.sha256(digest + piece[..<filled])
            offset += filled
        }
    }

    /// Empty: the default pool.
    var tenantID: Text { target.tenant.tenantID }

    /// The words about an import that goes on. Nil: it begins.
    var continuation: String? {
        settled.rowCount > 0 ? "going on behind row \(settled.rowCount) (\(target.tenant.name))" : nil
    }

    func note(_ settled: ImportTotals.Settled) throws(CommandError) {
        let json: JSONValue = [
            "format": .string(Text(target.format.rawValue)), "bytes": .integer(byteCount), "digest": .string(digest),
            "rows": .integer(settled.rowCount), "created": .integer(settled.createdCount),
            "replaced": .integer(settled.replacedCount), "skipped": .integer(settled.skippedCount),
            "rejected": .integer(settled.rejectedCount),
        ]
        let whole = JSONValue.object(target.tenant.members + (json.object ?? []))
        try File.replace(path, with: whole.serialized() + [0x0A])
    }

    /// Removes the file, because the import is complete.
    func remove() { unlink(path) }
}
