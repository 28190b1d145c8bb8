import Base
import Glibc
import Transport

/// The process's file descriptors: how many there are, and how many of them may be connections.
enum Descriptors {
    /// Raises the soft limit to the hard limit, which takes no privilege, and returns it.
    static func raise() -> Int {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return 1_024 }
        if limit.rlim_cur < limit.rlim_max {
            let before = limit.rlim_cur
            limit.rlim_cur = limit.rlim_max
            if setrlimit(resource, &limit) != 0 { limit.rlim_cur = before }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// The connections of the RPC port for which `descriptors` have room. Kept back are the open files of the store,
    /// the log and the loops, a file and a socket for each outbound request, a socket for each lookup of a name, the
    /// HTTP port, and connections that are closing.
    static func connectionsMax(descriptors: Int, threads: Int, httpConnectionsMax: Int, limits: Limits) -> Int {
        let outbound = 2 * limits.outboundWorkers + limits.outboundLookupsMax
        let keptBack = 32 + 4 * threads + outbound + httpConnectionsMax
        return max(8, (descriptors - keptBack) / 9 * 8)
    }
}

extension Limits {
    /// `descriptors`: how many files the process may open.
    mutating func setConnections(_ configuration: Configuration, descriptors: Int, log: Log) {
        let wanted = Int(configuration.connectionsMax)
        let possible = Descriptors.connectionsMax(
            descriptors: descriptors, threads: configuration.effectiveThreads,
            httpConnectionsMax: (configuration.httpAddress == "off" ? 0 : httpConnectionsMax)
                + (configuration.proxyProtocolFrom.isEmpty ? 0 : tlsHandshakesPerAddressMax), limits: self)
        connectionsMax = min(wanted, possible)
        if possible < wanted {
            log.warning(
                "connections_max is more than the limit of open files allows",
                [
                    "connections_max": .integer(Int64(wanted)), "possible": .integer(Int64(possible)),
                    "open_files": .integer(Int64(descriptors)),
                ])
        }
        func orElse(_ value: Int64, _ standard: Int) -> Int { value > 0 ? Int(value) : standard }
        connectionsPerAddressMax = orElse(configuration.connectionsPerAddressMax, connectionsMax)
        connectionsUnauthenticatedPerAddressMax = Int(configuration.connectionsUnauthenticatedPerAddressMax)
        connectionsPerCallerMax = orElse(configuration.connectionsPerCallerMax, max(1, connectionsMax / 5 * 4))
        streamsPerCallerMax = Int(configuration.streamsPerCallerMax)
    }
}
