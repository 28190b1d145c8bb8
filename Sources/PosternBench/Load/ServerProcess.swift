import Base
import Glibc

/// The server's process as /proc shows it (proc(5)): what it costs, seen from outside.
struct ServerProcess: Sendable {
    struct Usage: Sendable, Equatable {
        /// User and system time of all its threads so far; the kernel counts in hundredths of a second.
        var cpuMicroseconds: Int
        var residentByteCount: Int
        /// The memory without pages of mapped files, which belong to the page cache.
        var anonymousByteCount: Int
    }

    let pid: Int

    init(pid: Int) { self.pid = pid }

    /// Finds the process that listens on a TCP port of this machine. Only root finds posternd, which hides its files.
    init?(listeningOn port: UInt16) {
        guard let inode = Self.inode(listeningOn: port) else { return nil }
        let socket = "socket:[\(inode)]"
        for entry in Self.entries(of: "/proc") {
            guard let pid = Int(entry) else { continue }
            let files = "/proc/\(pid)/fd"
            if Self.entries(of: files).contains(where: { Self.link("\(files)/\($0)") == socket }) {
                self.pid = pid
                return
            }
        }
        return nil
    }

    func usage() throws(BenchError) -> Usage {
        let stat = String(decoding: try TextFile.read("/proc/\(pid)/stat"), as: UTF8.self)
        // The second field is the program's name and may hold anything but the last parenthesis.
        guard let nameEnd = stat.lastIndex(of: ")") else { throw BenchError(.failed, "/proc/\(pid)/stat: no name") }
        let fields = stat[stat.index(after: nameEnd)...].split(separator: " ")
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else {
            throw BenchError(.failed, "/proc/\(pid)/stat: no CPU time")
        }
        let status = String(decoding: try TextFile.read("/proc/\(pid)/status"), as: UTF8.self)
        return Usage(
            cpuMicroseconds: (user + system) * 1_000_000 / sysconf(Int32(_SC_CLK_TCK)),
            residentByteCount: Self.byteCount("VmRSS:", in: status),
            anonymousByteCount: Self.byteCount("RssAnon:", in: status))
    }

    /// CPU time that everything on this machine has taken so far: the first line of /proc/stat, without idling.
    static func machineCPUMicroseconds() throws(BenchError) -> Int {
        let line = String(decoding: try TextFile.read("/proc/stat"), as: UTF8.self).prefix { $0 != "\n" }
        let ticks = line.split(separator: " ").dropFirst().prefix(8).compactMap { Int($0) }
        guard ticks.count == 8 else { throw BenchError(.failed, "/proc/stat: no CPU times") }
        // user, nice, system, idle, iowait, irq, softirq, steal
        let busy = ticks.reduce(0, +) - ticks[3] - ticks[4]
        return busy * 1_000_000 / sysconf(Int32(_SC_CLK_TCK))
    }

    private static func byteCount(_ name: String, in status: String) -> Int {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name) }) else { return 0 }
        return (line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Int($0) } ?? 0)
            * 1024
    }

    /// A line of /proc/net/tcp: number, local address:port in hexadecimal, remote, state (0A is LISTEN), …, inode.
    private static func inode(listeningOn port: UInt16) -> String? {
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            guard let bytes = try? TextFile.read(table) else { continue }
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst() {
                let fields = line.split(separator: " ")
                guard fields.count > 9, fields[3] == "0A", let text = fields[1].split(separator: ":").last,
                    UInt16(text, radix: 16) == port
                else { continue }
                return String(fields[9])
            }
        }
        return nil
    }

    /// Empty for a process that has ended, or that is not ours to see.
    private static func entries(of path: String) -> [String] { (try? DirectoryNames.list(path)) ?? [] }

    private static func link(_ path: String) -> String? {
        var target = [CChar](repeating: 0, count: 256)
        let count = readlink(path, &target, target.count)
        return count > 0 ? String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }
}
