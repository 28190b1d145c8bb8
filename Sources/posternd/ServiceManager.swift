import Base
import Glibc
import Reactor

/// Tells the service manager how the server is, as sd_notify(3) describes; where none asks (NOTIFY_SOCKET) it tells
/// nobody.
///
/// Where the unit has `WatchdogSec=`, the manager restarts a server that does not say in time that its loops turn.
struct ServiceManager: Sendable {
    private let socketPath: [UInt8]
    /// So often at least, in microseconds, the manager wants to hear that the server lives; nil: never.
    private let watchdog: Int64?
    private let log: Log

    init(environment: [String: String], log: Log) {
        self.log = log
        var path = [UInt8]((environment["NOTIFY_SOCKET"] ?? "").utf8)
        // A name in the kernel alone begins with "@" here and with NUL in the address.
        if path.first == UInt8(ascii: "@") { path[0] = 0 }
        self.socketPath = path
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        // Left over from a process that started us, where it names another one.
        let isForUs = environment["WATCHDOG_PID"].map { $0 == String(getpid()) } ?? true
        self.watchdog = microseconds > 0 && isForUs ? microseconds : nil
    }

    func serving(at address: String) { tell("READY=1\nSTATUS=Serving on \(address)") }

    func stopping() { tell("STOPPING=1\nSTATUS=Finishing the calls in flight") }

    /// From now on says in time that the loops turn, until the process ends.
    func watch(_ loops: [EventLoop]) {
        guard let watchdog, !socketPath.isEmpty else { return }
        let pause = watchdog / 3
        let pulse = LoopPulse(loops, patience: .microseconds(pause))
        OSThread.startDetached(name: "watchdog", stackByteCount: 256 * 1024) {
            while true {
                usleep(UInt32(clamping: pause))
                if pulse.isBeating { tell("WATCHDOG=1") }
            }
        }
    }

    private func tell(_ message: String) {
        guard !socketPath.isEmpty else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let pathOffset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        let roomForPath = MemoryLayout.size(ofValue: address.sun_path)
        guard socketPath.count < roomForPath else { return failed("NOTIFY_SOCKET is too long") }
        withUnsafeMutableBytes(of: &address) { $0[pathOffset...].copyBytes(from: socketPath) }
        // Proof: two constants of the system's headers.
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return failed(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        let text = [UInt8](message.utf8)
        let sent = withUnsafeBytes(of: &address) { bytes in
            sendto(
                descriptor, text, text.count, Int32(MSG_NOSIGNAL),
                bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
                // A path ends with NUL; a name in the kernel is as long as the address says.
                // Proof: both are within an address.
                socklen_t(pathOffset + socketPath.count + (socketPath.first == 0 ? 0 : 1)))
        }
        if sent != text.count { failed(String(cString: strerror(errno))) }
    }

    /// The manager then takes us for a server that did not start, or that is stuck; the log says why.
    private func failed(_ reason: String) {
        log.warning("the service manager was not told", ["reason": .text(reason)])
    }
}
