import Base
import Crypto

/// The numbers of threads that nobody has set: they follow from what the process may use of the machine
/// (docs/decisions/0152).
extension Configuration {
    var effectiveThreads: Int { threads > 0 ? Int(threads) : MachineShare.processorCount }

    /// A worker for each loop, but no more than the memory has room for: each worker keeps the memory of one hash.
    var effectivePasswordWorkers: Int {
        if passwordWorkers > 0 { return Int(passwordWorkers) }
        let hashByteCount = PasswordHashProfile.standard.memoryKiB * 1_024
        let room = MachineShare.passwordMemory(of: MachineShare.memoryByteCount) / hashByteCount
        return max(1, min(effectiveThreads, room))
    }
}

extension Limits {
    /// Lowers the limits of memory to what the process may use.
    mutating func fitIntoMemory(log: Log) {
        guard fit(into: MachineShare.memoryByteCount) else { return }
        log.notice(
            "there is little memory: connections, password hashes and TLS handshakes get less",
            [
                "memory_bytes": .integer(Int64(MachineShare.memoryByteCount)),
                "connection_bytes": .integer(Int64(connectionMemoryMax)),
                "password_bytes": .integer(Int64(passwordMemoryMax)),
                "tls_handshakes": .integer(Int64(tlsHandshakesMax)),
            ])
    }
}
