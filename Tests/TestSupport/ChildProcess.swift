import Glibc

/// Another program, started by a test and ended by it.
public final class ChildProcess {
    public struct SpawnError: Error {
        public let program: String
        public let code: Int32
    }

    private let id: pid_t
    private var isReaped = false

    /// Starts `program` (a path, or a name on PATH) with its output discarded, or written to `output`. With
    /// `openFilesMax` the program may have no more descriptors than that (RLIMIT_NOFILE).
    public init(
        _ program: String, _ arguments: [String], output: String = "/dev/null", openFilesMax: Int? = nil
    ) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        // The runtime's own threads block signals, and a child inherits what the thread that starts it blocks.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var blocked = sigset_t()
        sigemptyset(&blocked)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var program = program
        var line = [program] + arguments
        if let openFilesMax {
            program = "/bin/sh"
            line = [program, "-c", "ulimit -n \(openFilesMax); exec \"$0\" \"$@\""] + line
        }
        let words = line.map { strdup($0) }
        defer { for word in words { free(word) } }
        var child = pid_t()
        let code = posix_spawnp(&child, program, &actions, &attributes, words + [nil], environ)
        guard code == 0 else { throw SpawnError(program: program, code: code) }
        self.id = child
    }

    deinit {
        if !isReaped { kill() }
    }

    /// What the kernel tells of the program: proc(5).
    public var processDirectory: String { "/proc/\(id)" }

    public func send(signal: Int32) { _ = Glibc.kill(id, signal) }

    /// Sends the signal to the main thread, as raise(3) does. Swift's Glibc module has no tgkill(2).
    public func sendToMainThread(signal: Int32) throws {
        let sender = try ChildProcess(
            "/usr/bin/python3", ["-c", "import ctypes; ctypes.CDLL(None).tgkill(\(id), \(id), \(signal))"],
            output: "/dev/null")
        _ = sender.wait()
    }

    /// Whether the program has ended; does not wait.
    public var hasEnded: Bool {
        if isReaped { return true }
        var status: Int32 = 0
        guard waitpid(id, &status, WNOHANG) == id else { return false }
        isReaped = true
        endStatus = status & 0x7F == 0 ? status >> 8 & 0xFF : -1
        return true
    }

    /// What `wait` returns, once `hasEnded` is true.
    public private(set) var endStatus: Int32?

    /// Sends SIGKILL, then waits until the program is gone.
    public func kill() {
        if isReaped { return }
        _ = Glibc.kill(id, SIGKILL)
        _ = wait()
    }

    /// The CPU time that the program used so far, user and system, in hundredths of a second (proc(5), stat).
    public var cpuTicks: Int {
        guard let stat = readFile("/proc/\(id)/stat") else { return 0 }
        // The second field is the name in parentheses and may hold spaces.
        let fields = String(decoding: stat, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else { return 0 }
        return user + system
    }

    /// The memory that belongs to the program and not to a file, in bytes (proc(5), RssAnon of status).
    public var anonymousByteCount: Int {
        guard let status = readFile("/proc/\(id)/status") else { return 0 }
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return line.flatMap { $0.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } }.map { $0 * 1_024 }
            ?? 0
    }

    /// The exit status; nil if the program does not end in time, and then it is killed.
    public func wait(seconds: Int) -> Int32? {
        for _ in 0..<seconds * 100 {
            var status: Int32 = 0
            if waitpid(id, &status, WNOHANG) == id {
                isReaped = true
                return status & 0x7F == 0 ? status >> 8 & 0xFF : -1
            }
            usleep(10_000)
        }
        kill()
        return nil
    }

    /// The exit status; -1 if a signal ended it.
    public func wait() -> Int32 {
        var status: Int32 = 0
        while waitpid(id, &status, 0) < 0 && errno == EINTR {}
        isReaped = true
        return status & 0x7F == 0 ? status >> 8 & 0xFF : -1
    }

    /// A program that was built beside these tests.
    public static func built(_ name: String) -> String {
        let path = CommandLine.arguments[0]
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        return "\(folder)/\(name)"
    }
}

/// The whole of a file, or nil.
public func readFile(_ path: String) -> [UInt8]? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = fread(&chunk, 1, chunk.count, file)
        if count == 0 { return bytes }
        bytes += chunk[..<count]
    }
}

/// Writes a file that belongs to this process's user.
public func writeFile(_ path: String, _ bytes: [UInt8]) {
    guard let file = fopen(path, "w") else { return }
    _ = bytes.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
    fclose(file)
}
