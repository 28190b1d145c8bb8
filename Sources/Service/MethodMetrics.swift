import Base

/// Counters of one method, by OpenTelemetry's RPC conventions (rpc.server.call.duration).
final class MethodMetrics: Sendable {
    let duration = DurationHistogram()
    private let outcomes: [Counter] = StatusCode.allCases.map { _ in Counter() }

    func record(_ code: StatusCode, nanoseconds: Int64) {
        outcomes[Int(code.rawValue)].add()
        duration.record(nanoseconds: nanoseconds)
    }

    func count(_ code: StatusCode) -> UInt64 { outcomes[Int(code.rawValue)].value }
}
