import Glibc

public enum LineDestination: Sendable, Equatable {
    /// A regular file that only its owner can read; it is made if it does not exist. Lines are added at its end.
    case file(String)
    /// An open descriptor, which stays open.
    case descriptor(Int32)
}

/// Where the lines of a `LineSink` go: an open file, which it owns, or a descriptor of the process.
struct LineOutput: ~Copyable {
    struct Result {
        var lostCount = 0
        var error: FileError?
    }

    private let path: String?
    private var descriptor: Int32
    /// The last write ended within a line.
    private var isMidLine = false

    /// A write of at most this size to a pipe is not mixed with the writes of other processes (PIPE_BUF, pipe(7)).
    private static let pipeByteCountMax = 4_096

    init(_ destination: LineDestination) throws(FileError) {
        switch destination {
        case .file(let path):
            self.path = path
            self.descriptor = try Self.open(path)
        case .descriptor(let number):
            self.path = nil
            self.descriptor = number
        }
    }

    deinit {
        if path != nil { close(descriptor) }
    }

    /// Opens the file of this name again, which may be another file by now. Does nothing for a descriptor.
    mutating func reopen() throws(FileError) {
        guard let path else { return }
        let next = try Self.open(path)
        close(descriptor)
        descriptor = next
        isMidLine = false
    }

    /// Writes whole lines. After an error the rest of them is lost.
    mutating func write(_ lines: [UInt8]) -> Result {
        var rest = lines[...]
        if isMidLine {
            var newline: [UInt8] = [UInt8(ascii: "\n")]
            guard Glibc.write(descriptor, &newline, 1) == 1 else { return failed(rest) }
            isMidLine = false
        }
        while !rest.isEmpty {
            let piece = path == nil ? Self.firstLines(of: rest) : rest
            let count = piece.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return failed(rest) }
            isMidLine = piece[piece.startIndex + count - 1] != UInt8(ascii: "\n")
            rest = rest.dropFirst(count)
        }
        return Result()
    }

    private func failed(_ rest: ArraySlice<UInt8>) -> Result {
        let error = FileError(path: path ?? "descriptor \(descriptor)", call: "write", code: errno)
        return Result(lostCount: rest.count { $0 == UInt8(ascii: "\n") }, error: error)
    }

    /// As many whole lines as one write to a pipe may hold; at least one line.
    private static func firstLines(of lines: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard lines.count > pipeByteCountMax else { return lines }
        let newline = UInt8(ascii: "\n")
        let last = lines.prefix(pipeByteCountMax).lastIndex(of: newline) ?? lines.firstIndex(of: newline)
        return last.map { lines[...$0] } ?? lines
    }

    /// Opens regular files only: opening a pipe, or writing to a terminal, may block.
    private static func open(_ path: String) throws(FileError) -> Int32 {
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let descriptor = Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw FileError(path: path, call: "open", code: errno) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw FileError(path: path, call: "open", code: EINVAL)
        }
        return descriptor
    }
}
