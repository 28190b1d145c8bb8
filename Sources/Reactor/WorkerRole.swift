import Base

/// The share of the processors that the threads of a pool get.
public enum WorkerPriority: Sendable, Equatable {
    /// All of them have this nice value, 0...19.
    case lowered(by: Int32)
    /// The threads get the time that no other thread wants. Only the first thread has a nice value instead, so that the
    /// pool's work goes on while other threads want all there is. Long works have threads of their own, with another
    /// nice value, so that none of them keeps the first thread.
    case spare(exceptFirst: Int32, andLong: Int32)

    /// One role for each thread of a pool with `workers` workers.
    func roles(workers: Int) -> [WorkerRole] {
        switch self {
        case .lowered(let value):
            return Array(repeating: WorkerRole(lane: .all, priority: .niceness(value)), count: workers)
        case .spare(let first, let long):
            let spare = WorkerRole(lane: .short, priority: .idle)
            return [WorkerRole(lane: .first, priority: .niceness(first))]
                + Array(repeating: spare, count: workers - 1)
                + Array(
                    repeating: WorkerRole(lane: .long, priority: .niceness(long)),
                    count: WorkAdmission.longWorkersMax(of: workers))
        }
    }
}

/// What one thread of a pool takes, and its share of the processors.
struct WorkerRole: Sendable, Equatable {
    var lane: WorkLane
    var priority: ThreadPriority
}

/// The works that a worker takes.
enum WorkLane: Int, Sendable, CaseIterable {
    case all
    /// Short ones, and those that another worker began and gets no processor for.
    case first
    /// Short ones, on a thread that may get no processor.
    case short
    /// Those that take longer than `WorkAdmission.longWork`.
    case long

    func takes(_ work: Work) -> Bool {
        switch self {
        case .all: true
        case .first, .short: !work.isLong
        case .long: work.isLong
        }
    }
}
