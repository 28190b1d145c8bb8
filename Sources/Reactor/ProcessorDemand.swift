import Base

/// Whether other threads want the processors on which a pool works, as far as the works that have ended tell. Pure.
///
/// `docs/decisions/0131` says what follows from it.
struct ProcessorDemand: Sendable {
    /// The time that a thread used for a work.
    struct Use: Sendable {
        /// The time from the work's beginning to its end.
        var nanoseconds: Int64
        var processorNanoseconds: Int64
        /// How often another thread ran in the middle of the work.
        var interruptions: Int64 = 0
    }

    /// Other threads want all processors: a work of the first worker gave way until it was late. Works of spare workers
    /// prove nothing, because these get what is left over.
    private(set) var isCrowded = false
    /// Other threads often want to run.
    var isShared: Bool { interruptionsPerSecond > Self.interruptionsPerSecondMax }
    /// A moving average: an eighth of each new value.
    private var interruptionsPerSecond: Int64 = 0

    /// On two processors, a second of hashing was interrupted 700 times in a server that did nothing else, and 1,600
    /// times beside 1,000 lookups a second.
    private static let interruptionsPerSecondMax: Int64 = 1_300
    /// A work has stalled if it takes this much longer than four times the expected time.
    private static let patience = Duration.milliseconds(40)

    /// How long `work` takes at most while there are processors for it.
    static func timeMax(of work: Work) -> Duration {
        // Proof: at most a second, four times.
        let expected = min(work.cost.time, .seconds(1)).microseconds
        return .microseconds(4 * expected + patience.microseconds)
    }

    /// A worker of `lane` has done `work`. Works that are shorter than a turn, and long works, say nothing.
    mutating func ended(_ work: Work, lane: WorkLane, use: Use) {
        guard lane == .first || lane == .short, work.cost.time >= GivingWay.turn else { return }
        let milliseconds = max(1, use.processorNanoseconds / 1_000_000)
        // Proof: a thread is interrupted less than a million times in a millisecond.
        let perSecond = min(use.interruptions, 1_000_000) * 1_000 / milliseconds
        interruptionsPerSecond += (perSecond - interruptionsPerSecond) / 8
        if use.nanoseconds > Self.timeMax(of: work).microseconds * 1_000 {
            if lane == .first { isCrowded = true }
        } else if lane == .short || use.nanoseconds <= 2 * work.cost.nanoseconds {
            isCrowded = false
        }
    }

    /// The time until which `work`, begun now by a worker of `lane`, gives way to other threads. Nil: it does not.
    ///
    /// A work that gives way ends later. So it gives way only if other threads often want to run, and only until it
    /// should have ended. On a crowded machine the works of the first worker do not give way, so that they get on.
    func givingWay(_ work: Work, _ lane: WorkLane, now: Instant) -> Instant? {
        guard isShared else { return nil }
        return switch lane {
        case .all: nil
        case .short: .distantFuture
        case .first, .long: isCrowded ? nil : now.advanced(by: Self.timeMax(of: work))
        }
    }
}
