import Base
import Reactor
import Synchronization

/// Counters of one method, by OpenTelemetry's RPC conventions (rpc.server.call.duration). Any thread.
///
/// Each loop counts in a lane of its own: a count that several processors write moves from cache to cache with every
/// call. If there are more loops than lanes, some loops share a lane.
final class MethodMetrics: Sendable {
    private struct Lane: ~Copyable, Sendable {
        let duration = DurationCounts()
        let outcomes: InlineArray<17, Atomic<UInt64>> = InlineArray { _ in Atomic(0) }
        /// Keeps the next lane off the last cache line of this one.
        private let padding: InlineArray<8, UInt64> = InlineArray(repeating: 0)
    }

    private let lanes: InlineArray<4, Lane> = InlineArray { _ in Lane() }

    func record(_ code: StatusCode, nanoseconds: Int64, on loop: EventLoop) {
        let lane = loop.number % lanes.count
        lanes[lane].outcomes[Int(code.rawValue)].add(1, ordering: .relaxed)
        lanes[lane].duration.record(nanoseconds: nanoseconds)
    }

    func count(_ code: StatusCode) -> UInt64 {
        lanes.indices.reduce(0) { $0 + lanes[$1].outcomes[Int(code.rawValue)].load(ordering: .relaxed) }
    }

    var duration: DurationHistogram.Snapshot {
        var total = DurationHistogram.Snapshot()
        for lane in lanes.indices { total.add(lanes[lane].duration.snapshot) }
        return total
    }
}
