// The file of `user import --rejects`: a JSON object in each line, which names a row and says why it was refused.

import Base
import Glibc
import JSON

/// A new file, or, when an import continues, the lines of an earlier run about the rows that it settled.
///
/// Later rows are read and refused again: their earlier lines would count them twice. The lines may hold password
/// hashes, so a file that is there already is replaced by one that only its owner may read.
struct RejectsFile {
    let path: String
    private let descriptor: Int32

    /// `settledRowCount`: how many rows of the users' file an earlier run settled; 0 begins the file anew. `users` is
    /// the users' file. A file of anything else than rejected rows stays as it was.
    init(_ path: String, settledRowCount: Int64, users: Int32) throws(CommandError) {
        try File.checkName(path)
        self.path = path
        guard !Self.isFile(path, users) else {
            throw .usage("\(path): is the users' file", hint: "name another file for --rejects")
        }
        guard Self.isReplaceable(path) else {
            descriptor = try File.open(path, O_WRONLY)
            return
        }
        let source = File.exists(path) ? try File.open(path) : nil
        defer { if let source { close(source) } }
        let temporary = "\(path).\(getpid())"
        // A file that an earlier process left behind may be readable by others.
        unlink(temporary)
        descriptor = try File.open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        do throws(CommandError) {
            if let source { try Self.copyLines(of: source, named: path, upToRow: settledRowCount, to: descriptor) }
            guard rename(temporary, path) == 0 else { throw CommandError.system(path) }
        } catch {
            close(descriptor)
            unlink(temporary)
            throw error
        }
    }

    /// False for a pipe or a device, for example /dev/stdout, which is written to as it is.
    private static func isReplaceable(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG
    }

    /// Whether both are the same regular file, by whatever names.
    private static func isFile(_ path: String, _ descriptor: Int32) -> Bool {
        var named = stat()
        var opened = stat()
        return stat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_mode & S_IFMT == S_IFREG
            && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino
    }

    func append(_ line: JSONValue) throws(CommandError) {
        try File.write(line.serialized() + [0x0A], to: descriptor, name: path)
    }

    private static func copyLines(
        of source: Int32, named path: String, upToRow rowMax: Int64, to target: Int32
    ) throws(CommandError) {
        var rest: [UInt8] = []
        while let chunk = try File.readChunk(descriptor: source, name: path) {
            rest += chunk
            var kept: [UInt8] = []
            while let end = rest.firstIndex(of: 0x0A) {
                let line = Array(rest[...end])
                rest.removeFirst(line.count)
                guard let row = (try? JSONValue(parsing: line))?["row"]?.integer else {
                    throw refusal(path)
                }
                if row <= rowMax { kept += line }
            }
            try File.write(kept, to: target, name: path)
            guard rest.count <= File.byteCountMax else { throw refusal(path) }
        }
        // The rest is a line that was not written to its end: its row was not settled.
        let beginning = [UInt8](#"{"row":"#.utf8)
        guard rest.starts(with: beginning) || beginning.starts(with: rest) else { throw refusal(path) }
    }

    private static func refusal(_ path: String) -> CommandError {
        .usage("\(path) is no --rejects file of an import", hint: "it is left as it was: name another file")
    }
}
