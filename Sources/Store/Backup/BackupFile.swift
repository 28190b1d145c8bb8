import Base
public import Crypto
import Glibc
public import Messages

/// The reason why a file cannot be restored.
public enum BackupError: Error, Equatable, CustomStringConvertible {
    case notABackup
    /// Made by a newer version of the server, which writes backups in another form.
    case newerFormat(UInt32)
    /// The file ends before its backup does, or goes on after it.
    case cut
    /// Bytes in the file differ from those that were written.
    case altered
    /// The backup is of a store with another master key.
    case otherMasterKey
    /// The file cannot be read.
    case file(call: String, code: Int32)
    /// The store in it cannot be written to where it is unpacked.
    case unpacking(call: String, code: Int32)

    public var description: String {
        switch self {
        case .notABackup: "this is not a backup"
        case .newerFormat(let version):
            "the backup is in format \(version), which is newer than this program; use the newer one"
        case .cut: "the backup is not whole: the file was cut, or its making was broken off"
        case .altered: "the backup is damaged: bytes in it are others than were written"
        case .otherMasterKey: "the backup is of a store with another master key; name that key's file"
        case .file(let call, let code), .unpacking(let call, let code): "\(call): \(String(cString: strerror(code)))"
        }
    }
}

/// A backup in a file, checked as a whole when it is opened.
public final class BackupFile: Sendable {
    public let header: BackupHeader
    /// The bytes of the data file in it.
    public let dataByteCount: UInt64
    private let file: Int32
    private let dataOffset: UInt64
    /// SHA-256 of everything before the trailer, as the HMAC confirms it.
    private let digest: [UInt8]
    private static let chunkByteCount: UInt64 = 1 << 20

    /// Reads the whole file. `masterKeyID` and `key` are the store's.
    public init(_ path: String, masterKeyID: [UInt8], key: HMACKey) throws(BackupError) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw .file(call: "open", code: errno) }
        do throws(BackupError) {
            let byteCount = try Self.byteCount(of: file)
            let (header, dataOffset) = try Self.header(of: file, byteCount: byteCount)
            guard byteCount - dataOffset >= BackupFormat.trailerByteCount else { throw .cut }
            let end = byteCount - BackupFormat.trailerByteCount
            let trailer = try Self.bytes(of: file, at: end, count: BackupFormat.trailerByteCount)
            let dataByteCount = trailer[..<8].bigEndianNumber
            guard dataByteCount > 0, dataByteCount == end - dataOffset else { throw .cut }
            let digest = try Self.digest(of: file, byteCount: end)
            guard Array(trailer[8..<8 + Digest.byteCount]) == digest else { throw .altered }
            guard header.masterKeyID == masterKeyID else { throw .otherMasterKey }
            guard key.isValid(tag: Array(trailer[(8 + Digest.byteCount)...]), of: digest) else { throw .altered }
            (self.header, self.dataByteCount) = (header, dataByteCount)
            (self.file, self.dataOffset, self.digest) = (file, dataOffset, digest)
        } catch {
            close(file)
            throw error
        }
    }

    deinit { close(file) }

    /// Writes the data file to `path`, where there must be nothing yet, and syncs it. `altered` if the backup is not
    /// what it was when it was opened: it may be where others write, and it is read a second time here.
    public func unpack(to path: String) throws(BackupError) {
        let output = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard output >= 0 else { throw .unpacking(call: "create", code: errno) }
        defer { close(output) }
        var digest = RunningDigest()
        // A few KiB: the header has at most `BackupFormat.headerByteCountMax` bytes.
        digest.update(try Self.bytes(of: file, at: 0, count: dataOffset))
        var offset = dataOffset
        let end = dataOffset + dataByteCount
        while offset < end {
            let chunk = try Self.bytes(of: file, at: offset, count: min(end - offset, Self.chunkByteCount))
            digest.update(chunk)
            do {
                try PrivateFile.writeAll(chunk, to: output, path: path)
            } catch {
                throw .unpacking(call: error.call, code: error.code)
            }
            offset += UInt64(chunk.count)
        }
        guard digest.finish() == self.digest else { throw .altered }
        guard fsync(output) == 0 else { throw .unpacking(call: "fsync", code: errno) }
    }
}

// MARK: - Reading

extension BackupFile {
    /// The header of the file at `path`. The rest of the file is not read, and may be damaged or missing.
    public static func readHeader(of path: String) throws(BackupError) -> BackupHeader {
        // Without O_NONBLOCK, a pipe of that name would keep the caller waiting for a writer.
        let file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { throw .file(call: "open", code: errno) }
        defer { close(file) }
        return try Self.header(of: file, byteCount: Self.byteCount(of: file)).0
    }

    private static func byteCount(of file: Int32) throws(BackupError) -> UInt64 {
        var status = stat()
        guard fstat(file, &status) == 0 else { throw .file(call: "fstat", code: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notABackup }
        return UInt64(clamping: status.st_size)
    }

    private static func header(
        of file: Int32, byteCount: UInt64
    ) throws(BackupError) -> (BackupHeader, dataOffset: UInt64) {
        guard byteCount >= BackupFormat.prefixByteCount else { throw .notABackup }
        let prefix = try bytes(of: file, at: 0, count: BackupFormat.prefixByteCount)
        guard prefix.starts(with: BackupFormat.magic) else { throw .notABackup }
        let count = prefix[BackupFormat.magic.count...].bigEndianNumber
        guard count <= BackupFormat.headerByteCountMax else { throw .altered }
        let dataOffset = BackupFormat.prefixByteCount + count
        guard dataOffset <= byteCount else { throw .cut }
        let encoded = try bytes(of: file, at: BackupFormat.prefixByteCount, count: count)
        guard let header = try? BackupHeader(decoding: encoded, limits: MessageLimits()) else { throw .altered }
        guard header.formatVersion <= BackupFormat.version else { throw .newerFormat(header.formatVersion) }
        return (header, dataOffset)
    }

    private static func digest(of file: Int32, byteCount: UInt64) throws(BackupError) -> [UInt8] {
        var digest = RunningDigest()
        var offset: UInt64 = 0
        while offset < byteCount {
            let chunk = try bytes(of: file, at: offset, count: min(byteCount - offset, chunkByteCount))
            digest.update(chunk)
            offset += UInt64(chunk.count)
        }
        return digest.finish()
    }

    private static func bytes(of file: Int32, at offset: UInt64, count: UInt64) throws(BackupError) -> [UInt8] {
        // Proof: no caller asks for more than `chunkByteCount`.
        let count = Int(clamping: count)
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes.withUnsafeMutableBytes {
                pread(file, $0.baseAddress?.advanced(by: filled), count - filled, off_t(clamping: offset) + filled)
            }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw .file(call: "read", code: errno) }
            guard got > 0 else { throw .cut }
            filled += got
        }
        return bytes
    }
}
