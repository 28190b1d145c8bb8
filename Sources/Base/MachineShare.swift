internal import CThread
import Glibc

/// What this process may use of the machine, as it was when the process first asked. A container or a unit may leave it
/// less than there is: docs/decisions/0152.
public enum MachineShare {
    private static let groups = ControlGroups()

    /// The processors that are switched on, on which this process may run, and for which it has time: at least 1.
    public static let processorCount: Int = {
        // Proof: the name of the setting is a small constant.
        let online = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        let counts = [online, thread_processor_count(), groups.processorCount ?? .max]
        return counts.filter { $0 > 0 }.min() ?? 1
    }()

    /// The bytes of memory: the machine's, or the limit of a control group if that is less.
    public static let memoryByteCount: Int = {
        // Proof: the name of the setting is a small constant.
        let pageCount = sysconf(Int32(_SC_PHYS_PAGES))
        // Proof: the name of the setting is a small constant.
        let pageByteCount = sysconf(Int32(_SC_PAGESIZE))
        let (byteCount, isTooMuch) = pageCount.multipliedReportingOverflow(by: pageByteCount)
        let machine = pageCount > 0 && pageByteCount > 0 && !isTooMuch ? byteCount : Int.max
        return min(machine, groups.memoryByteCount ?? .max)
    }()

    /// The part of so much memory that password hashes may take while they are computed. What idle workers keep
    /// meanwhile may be as much again.
    public static func passwordMemory(of byteCount: Int) -> Int { byteCount / 16 * 5 }

    /// The part of so much memory that all connections may take.
    public static func connectionMemory(of byteCount: Int) -> Int { byteCount / 4 }

    /// The TLS handshakes in flight for which there is room in a sixteenth of so much memory; nothing counts their
    /// memory. A few bytes of a stranger have OpenSSL make and clear a buffer of 128 KiB, for a first message that is
    /// said to be as long.
    public static func handshakes(of byteCount: Int) -> Int { max(16, byteCount / 16 / (150 * 1024)) }
}

extension Limits {
    /// Lowers the limits of memory, and of what takes uncounted memory, to what fits into `byteCount` bytes. Returns
    /// whether one of them was lowered.
    public mutating func fit(into byteCount: Int) -> Bool {
        let (connections, passwords) = (
            MachineShare.connectionMemory(of: byteCount), MachineShare.passwordMemory(of: byteCount)
        )
        guard connections < connectionMemoryMax || passwords < passwordMemoryMax else { return false }
        connectionMemoryMax = min(connectionMemoryMax, connections)
        passwordMemoryMax = min(passwordMemoryMax, passwords)
        tlsHandshakesMax = min(tlsHandshakesMax, MachineShare.handshakes(of: byteCount))
        return true
    }
}
