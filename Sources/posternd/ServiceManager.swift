import Base
import Glibc
import Reactor

/// Tells the service manager the state of the server, as sd_notify(3) describes. If no manager asks (NOTIFY_SOCKET), it
/// does nothing.
///
/// If the unit has `WatchdogSec=`, the manager restarts a server that does not say in time that its loops turn.
struct ServiceManager: Sendable {
    private let socketPath: [UInt8]
    /// The longest time, in microseconds, between two signs of life for the manager; nil if it wants none.
    private let watchdog: Int64?
    private let log: Log

    init(environment: [String: String], log: Log) {
        self.log = log
        var path = [UInt8]((environment["NOTIFY_SOCKET"] ?? "").utf8)
        // An abstract name, without a file, begins with "@" here and with NUL in the address.
        if path.first == UInt8(ascii: "@") { path[0] = 0 }
        self.socketPath = path
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        // If it names another process, it is left over from a process that started us.
        let isForUs = environment["WATCHDOG_PID"].map { $0 == String(getpid()) } ?? true
        self.watchdog = microseconds > 0 && isForUs ? microseconds : nil
    }

    func serving(at address: String) { tell("READY=1\nSTATUS=Serving on \(address)") }

    /// `seconds`: how long the stop may take. Without this, the manager would end a longer stop than its unit allows
    /// (`TimeoutStopSec=`).
    func stopping(within seconds: Int64) {
        tell("STOPPING=1\nSTATUS=Finishing the calls in flight\nEXTEND_TIMEOUT_USEC=\(seconds * 1_000_000)")
    }

    /// From now on tells the manager in time that the loops turn, until the process ends.
    func watch(_ loops: [EventLoop]) {
        guard let watchdog, !socketPath.isEmpty else { return }
        let pause = watchdog / 3
        let pulse = LoopPulse(loops, patience: .microseconds(pause))
        do throws(ThreadError) {
            try OSThread.startDetached(name: "watchdog", stackByteCount: 256 * 1024) {
                while true {
                    usleep(UInt32(clamping: pause))
                    if pulse.isBeating { tell("WATCHDOG=1") }
                }
            }
        } catch {
            failed("\(error)")
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
                // A path ends with NUL; the address gives the length of an abstract name.
                // Proof: both are within an address.
                socklen_t(pathOffset + socketPath.count + (socketPath.first == 0 ? 0 : 1)))
        }
        if sent != text.count { failed(String(cString: strerror(errno))) }
    }

    /// The manager then believes that the server did not start or is stuck; the log says why.
    private func failed(_ reason: String) {
        log.warning("the service manager was not told", ["reason": .text(reason)])
    }
}
