import Base
import Synchronization

@testable import PosternAuth

/// A client's clocks, which move only when told to: the wall clock may be wrong, and sleepers wake as time passes.
final class TestClock: Sendable {
    private struct Sleeper {
        let id: Int
        let until: Instant
        let promise: Promise<Void>
    }

    private struct State {
        var now = Instant(nanoseconds: 1_000_000_000_000)
        var sleepers: [Sleeper] = []
        var lastID = 0
    }

    let wall: ManualClock
    private let state = Mutex(State())

    init(wallStartingAt start: Timestamp) { wall = ManualClock(startingAt: start) }

    var clock: AuthClock {
        AuthClock(wall: wall.clock) { [self] in
            state.withLock { $0.now }
        } sleep: { [self] in
            try await sleep($0)
        }
    }

    /// Advances both clocks; sleepers that have slept long enough wake up.
    func advance(by duration: Duration) {
        wall.advance(by: duration)
        let awake = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let awake = state.sleepers.filter { $0.until <= state.now }
            state.sleepers.removeAll { $0.until <= state.now }
            return awake
        }
        for sleeper in awake { sleeper.promise.succeed(()) }
    }

    /// The number of sleeps that ever began.
    var sleepCount: Int { state.withLock { $0.lastID } }

    var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// The time until each sleeper wakes.
    var wakeUps: [Duration] {
        state.withLock { state in state.sleepers.map { .nanoseconds($0.until.nanoseconds(since: state.now)) } }
    }

    /// The time until the first sleeper wakes.
    var nextWakeUp: Duration? {
        wakeUps.min()
    }

    private func sleep(_ duration: Duration) async throws {
        let promise = Promise<Void>()
        let id = state.withLock { state in
            state.lastID += 1
            state.sleepers.append(Sleeper(id: state.lastID, until: state.now.advanced(by: duration), promise: promise))
            return state.lastID
        }
        defer { state.withLock { $0.sleepers.removeAll { $0.id == id } } }
        try await promise.cancellableValue()
    }
}
