import Base
import Glibc

/// The resources of the machine that the process uses, under the names that Prometheus gives them.
struct ProcessMetrics {
    let cpuSeconds: Double
    let residentBytes: Double
    let openDescriptors: Double
    let descriptorsMax: Double

    /// Reads the present values. A value that the kernel does not tell is 0.
    init() {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        cpuSeconds = Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime)
        // Proof: a constant of the headers.
        residentBytes = Double(Self.residentPageCount()) * Double(sysconf(Int32(_SC_PAGESIZE)))
        openDescriptors = Double(Self.openDescriptorCount())
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        descriptorsMax = Double(limit.rlim_cur)
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }

    /// The second number of /proc/self/statm, proc(5).
    private static func residentPageCount() -> Int {
        let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 128)
        let count = read(descriptor, &bytes, bytes.count)
        let numbers = bytes.prefix(max(0, count)).split(separator: UInt8(ascii: " "))
        return numbers.count > 1 ? Int(String(decoding: numbers[1], as: UTF8.self)) ?? 0 : 0
    }

    /// The count, without the descriptor that is open for counting.
    private static func openDescriptorCount() -> Int {
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        var count = 0
        errno = 0
        while readdir(folder) != nil { count += 1 }
        // readdir(3) gives nil at the end and after an error, which alone sets errno.
        return errno == 0 ? max(0, count - 3) : 0
    }
}

extension PrometheusPage {
    mutating func process(_ process: ProcessMetrics, version: Text, startedAt: Timestamp) {
        family("postern_build_info", "gauge", "Always 1, with the server's version as a label.")
        value("postern_build_info", #"version="\#(version)""#, 1)
        single(
            "process_start_time_seconds", "gauge", "When the server started, since 1970.",
            Double(startedAt.microseconds) / 1_000_000)
        single("process_cpu_seconds_total", "counter", "Processor time, user and system.", process.cpuSeconds)
        single(
            "process_resident_memory_bytes", "gauge", "Memory in use, mapped database included.", process.residentBytes)
        single("process_open_fds", "gauge", "Open file descriptors.", process.openDescriptors)
        single("process_max_fds", "gauge", "The most file descriptors that can be open.", process.descriptorsMax)
    }
}
