import Glibc

/// What the control groups of this process leave it of the machine: cgroups(7). They are how `CPUQuota=` and
/// `MemoryMax=` of a unit, `--cpus` and `--memory` of a container and `limits` of a pod are kept. sysconf(3) does not
/// know them.
///
/// Each group above the process's own group may have limits, too; the smallest counts.
struct ControlGroups: Equatable {
    /// Rounded up: for one and a half processors it is 2. Nil without a limit.
    private(set) var processorCount: Int?
    /// Nil without a limit.
    private(set) var memoryByteCount: Int?

    /// `membership`: the kernel's file with the groups of the process. `mount`: the folder of the groups. In version 1,
    /// each controller has a folder of its own there.
    init(membership: String = "/proc/self/cgroup", mount: String = "/sys/fs/cgroup") {
        for line in Self.contents(of: membership).split(separator: UInt8(ascii: "\n")) {
            // The number of the hierarchy, its controllers (none in version 2), the path of the group.
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let controllers = parts[1].split(separator: UInt8(ascii: ","))
            for group in Self.withAncestors(parts[2]) {
                if controllers.isEmpty { readVersion2("\(mount)\(group)") }
                if controllers.contains(where: { $0.elementsEqual("cpu".utf8) }) {
                    readProcessorsOfVersion1("\(mount)/cpu\(group)")
                }
                if controllers.contains(where: { $0.elementsEqual("memory".utf8) }) {
                    boundMemory(by: Self.numbers(in: "\(mount)/memory\(group)/memory.limit_in_bytes"))
                }
            }
        }
    }

    private mutating func readVersion2(_ folder: String) {
        // "150000 100000": microseconds of processor time in each period of so many microseconds; "max 100000".
        let quota = Self.numbers(in: "\(folder)/cpu.max")
        if quota.count == 2 { boundProcessors(by: quota[0], in: quota[1]) }
        boundMemory(by: Self.numbers(in: "\(folder)/memory.max"))
    }

    private mutating func readProcessorsOfVersion1(_ folder: String) {
        // The quota is -1 without a limit.
        let (quota, period) = (
            Self.numbers(in: "\(folder)/cpu.cfs_quota_us"), Self.numbers(in: "\(folder)/cpu.cfs_period_us")
        )
        if quota.count == 1, period.count == 1 { boundProcessors(by: quota[0], in: period[0]) }
    }

    private mutating func boundProcessors(by quota: Int?, in period: Int?) {
        guard let quota, let period, quota > 0, period > 0 else { return }
        let count = quota / period + (quota % period == 0 ? 0 : 1)
        processorCount = min(processorCount ?? .max, count)
    }

    private mutating func boundMemory(by numbers: [Int?]) {
        guard numbers.count == 1, let byteCount = numbers[0], byteCount > 0 else { return }
        memoryByteCount = min(memoryByteCount ?? .max, byteCount)
    }

    /// The path of a group, and those of the groups above it. In a container the kernel may show a path of the host,
    /// where there is nothing; the last path, which is empty, is then the container's own group.
    private static func withAncestors(_ group: ArraySlice<UInt8>) -> [String] {
        var (rest, paths) = (group, [String]())
        while let slash = rest.lastIndex(of: UInt8(ascii: "/")) {
            // Not bytes: the kernel's name of a folder, which is only opened.
            paths.append(String(decoding: rest, as: UTF8.self))
            rest = rest[..<slash]
        }
        return paths + [""]
    }

    /// The words of a file as numbers; nil for a word that is none. Empty if the file cannot be read.
    private static func numbers(in path: String) -> [Int?] {
        contents(of: path).split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }.map {
            // Not bytes: a number of the kernel's.
            Int(String(decoding: $0, as: UTF8.self))
        }
    }

    private static func contents(of path: String) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        return (try? OpenFile.readAll(file, path: path, byteCountMax: 64 * 1024)) ?? []
    }
}
