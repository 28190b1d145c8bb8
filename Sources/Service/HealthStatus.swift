import Base
public import Store
import Synchronization

/// Whether the server serves, for grpc.health.v1 and /healthz, and the waiters to wake when this changes.
public final class HealthStatus: Sendable {
    private struct State {
        var isStarted = false
        var isBehind = false
        var storeTrouble: StoreTrouble?
        var isDiskSilent = false
        var holdsSnapshotsBack = false
        var troubleLog = TroubleLog()
        var waiters: [ObjectIdentifier: Promise<Void>] = [:]

        var isServing: Bool { isStarted && !isBehind }
        /// While the writer waits for the disk, it reports no other trouble.
        var trouble: StoreTrouble? { isDiskSilent ? .diskSilent : storeTrouble }
    }

    private let state = Mutex(State())

    public init() {}

    /// For tests.
    package var waiterCount: Int { state.withLock { $0.waiters.count } }

    public var isServing: Bool { state.withLock { $0.isServing } }

    /// The reason why the server is degraded: it serves, but takes fewer changes than usual, or none; or its store may
    /// be damaged.
    public var trouble: StoreTrouble? {
        state.withLock { $0.trouble ?? ($0.holdsSnapshotsBack ? .snapshotsHeldBack : nil) }
    }

    /// Notes that a node's process ended while it made a snapshot of its cluster, or that a later one was made. The log
    /// has a line of `ClusterKeeper`.
    public func note(holdsSnapshotsBack: Bool) { state.withLock { $0.holdsSnapshotsBack = holdsSnapshotsBack } }

    /// Notes the store's trouble. The log gets a line when the trouble begins, changes and ends; see `TroubleLog`.
    func note(_ trouble: StoreTrouble?, log: Log) { note(log) { $0.storeTrouble = trouble } }

    /// Notes whether a commit has waited for the disk for too long. Called about once a second.
    func note(isDiskSilent: Bool, log: Log) { note(log) { $0.isDiskSilent = isDiskSilent } }

    private func note(_ log: Log, _ body: (inout State) -> Void) {
        let line = state.withLock { state in
            let before = state.trouble
            body(&state)
            guard state.trouble != before else { return TroubleLog.Line?.none }
            return state.troubleLog.changed(to: state.trouble, now: .now)
        }
        if let line { Self.write(line, to: log) }
    }

    /// Writes the line that had to wait. Called about once a second.
    func writeDueLine(to log: Log) {
        if let line = state.withLock({ $0.troubleLog.due(now: .now) }) { Self.write(line, to: log) }
    }

    private static func write(_ line: TroubleLog.Line, to log: Log) {
        let suppressed: Log.Value = .integer(line.suppressedCount)
        if let trouble = line.trouble {
            log.error("the store is in trouble", ["reason": .text("\(trouble)"), "suppressed": suppressed])
        } else {
            log.notice("the store takes all writes again", ["suppressed": suppressed])
        }
    }

    public func set(isServing: Bool) { change { $0.isStarted = isServing } }

    /// A node of a cluster that is behind the journal, or was cut off from it for too long, does not serve until this
    /// is over.
    func set(isBehind: Bool) { change { $0.isBehind = isBehind } }

    private func change(_ body: (inout State) -> Void) {
        let waiters: [Promise<Void>] = state.withLock { state in
            let before = state.isServing
            body(&state)
            guard state.isServing != before else { return [] }
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.succeed(()) }
    }

    /// Waits until the call is cancelled.
    func neverChanges() async throws { try await Promise<Void>().cancellableValue() }

    /// Returns when the status differs from `known`; throws `CancellationError`.
    func changed(from known: Bool) async throws {
        let waiter = Promise<Void>()
        let isChanged = state.withLock { state in
            if state.isServing != known { return true }
            state.waiters[ObjectIdentifier(waiter)] = waiter
            return false
        }
        guard !isChanged else { return }
        // A cancelled waiter leaves nothing behind.
        defer { state.withLock { $0.waiters[ObjectIdentifier(waiter)] = nil } }
        try await waiter.cancellableValue()
    }
}
