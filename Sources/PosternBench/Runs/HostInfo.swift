import Base
import Glibc
import JSON
import Synchronization

/// The machine that the load tool runs on: without it nobody can compare two results.
struct HostInfo {
    let members: [JSONValue.Member]
    let processorCount = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    init() {
        var names = utsname()
        uname(&names)
        let release = withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        members = [
            .init("processors", .integer(Int64(processorCount))),
            .init("processor", .string(Text(Self.processor))), .init("kernel", .string(Text(release))),
            .init("core_distance_nanoseconds", Self.coreDistance().map { .integer($0) } ?? .null),
        ]
    }

    private static var processor: String {
        guard let bytes = try? TextFile.read("/proc/cpuinfo") else { return "" }
        let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("model name") }
        return line?.split(separator: ":").last.map { String($0.drop { $0 == " " }) } ?? ""
    }

    /// How long a cache line takes from one processor to another: the host of a virtual machine moves its processors,
    /// and what threads share costs several times as much when they are far apart. The best of many short rounds of
    /// ping-pong within 20 ms. Nil with one processor.
    private static func coreDistance() -> Int64? {
        guard sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1 else { return nil }
        let court = Court()
        let other = OSThread(name: "distance") {
            while !court.isOver.load(ordering: .relaxed) {
                let turn = court.turn.load(ordering: .acquiring)
                if turn % 2 == 1 { court.turn.store(turn + 1, ordering: .releasing) }
            }
        }
        let end = Instant.now.advanced(by: .milliseconds(20))
        var best = Int64.max
        while Instant.now < end {
            let begin = Instant.now
            guard court.play(rounds: 50, until: end) else { break }
            best = min(best, Instant.now.nanoseconds(since: begin) / 100)
        }
        court.isOver.store(true, ordering: .relaxed)
        other.join()
        return best == .max ? nil : best
    }

    private final class Court: Sendable {
        let turn = Atomic<Int>(0)
        let isOver = Atomic<Bool>(false)

        /// False when the time is up before.
        func play(rounds: Int, until end: Instant) -> Bool {
            for _ in 0..<rounds {
                turn.store(turn.load(ordering: .relaxed) + 1, ordering: .releasing)
                var spins = 0
                while turn.load(ordering: .acquiring) % 2 == 1 {
                    spins += 1
                    if spins % 4_096 == 0, Instant.now >= end { return false }
                }
            }
            return true
        }
    }
}
