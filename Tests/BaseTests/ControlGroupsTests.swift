import Glibc
import TestSupport
import Testing

@testable import Base

/// The limits of control groups, read from folders such as the kernel makes.
@Suite struct ControlGroupsTests {
    /// `files`: their contents by their paths below the folder of the groups.
    private static func groups(_ membership: String, _ files: [String: String]) throws -> ControlGroups {
        try withTemporaryDirectory { directory in
            for (path, text) in files {
                var folder = directory
                for name in path.split(separator: "/").dropLast() {
                    folder += "/\(name)"
                    mkdir(folder, 0o700)
                }
                writeFile("\(directory)/\(path)", [UInt8](text.utf8))
            }
            writeFile("\(directory)/membership", [UInt8](membership.utf8))
            return ControlGroups(membership: "\(directory)/membership", mount: directory)
        }
    }

    @Test func `A container's own group is the root of what it sees`() throws {
        let groups = try Self.groups("0::/\n", ["cpu.max": "150000 100000\n", "memory.max": "536870912\n"])
        #expect(groups.processorCount == 2 && groups.memoryByteCount == 512 << 20)
    }

    @Test func `The smallest limit of a unit's group and of those above counts`() throws {
        let groups = try Self.groups(
            "0::/system.slice/postern.service\n",
            [
                "system.slice/cpu.max": "300000 100000\n", "system.slice/memory.max": "1000000\n",
                "system.slice/postern.service/cpu.max": "max 100000\n",
                "system.slice/postern.service/memory.max": "2000000\n",
            ])
        #expect(groups.processorCount == 3 && groups.memoryByteCount == 1_000_000)
    }

    @Test func `Version 1 has a folder for each controller`() throws {
        let membership = "5:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n1:name=systemd:/docker/1f\n"
        // In a container, the path is the host's, and its own group is the root of what it sees.
        for group in ["", "/docker/1f"] {
            let groups = try Self.groups(
                membership,
                [
                    "cpu\(group)/cpu.cfs_quota_us": "50000\n", "cpu\(group)/cpu.cfs_period_us": "100000\n",
                    "memory\(group)/memory.limit_in_bytes": "268435456\n",
                ])
            #expect(groups.processorCount == 1 && groups.memoryByteCount == 256 << 20, "\(group)")
        }
    }

    @Test func `There may be no limit, no file, or none that makes sense`() throws {
        let unlimited = ["cpu.max": "max 100000\n", "memory.max": "max\n"]
        let senseless = ["cpu.max": "0 0\n", "memory.max": "-5\n"]
        let others = ["cpu.max": "100000\n", "memory.max": ""]
        for files in [[:], unlimited, senseless, others] as [[String: String]] {
            let groups = try Self.groups("0::/\n", files)
            #expect(groups.processorCount == nil && groups.memoryByteCount == nil, "\(files)")
        }
        for membership in ["", "\n", "0:", "::::", "0::/../../elsewhere\n"] {
            let groups = try Self.groups(membership, [:])
            #expect(groups.processorCount == nil && groups.memoryByteCount == nil, "\(membership)")
        }
        let minusOne = ["cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"]
        #expect(try Self.groups("4:cpu:/\n", minusOne).processorCount == nil)
    }

    @Test func `Limits of memory are lowered only where there is little`() {
        var limits = Limits()
        let isLowered = limits.fit(into: 1 << 30)
        #expect(!isLowered && limits.connectionMemoryMax == 256 << 20 && limits.passwordMemoryMax == 320 << 20)
        #expect(limits.tlsHandshakesMax == 512)
        let isLoweredByLess = limits.fit(into: 512 << 20)
        #expect(isLoweredByLess)
        #expect(limits.connectionMemoryMax == 128 << 20 && limits.passwordMemoryMax == 160 << 20)
        // Each may take 150 KiB: a sixteenth of the memory together.
        #expect(limits.tlsHandshakesMax == 218)
        _ = limits.fit(into: 1 << 20)
        #expect(limits.tlsHandshakesMax == 16)
    }
}
