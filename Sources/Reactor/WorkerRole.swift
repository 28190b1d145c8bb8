import Base

/// The share of the processors that the threads of a pool get.
public enum WorkerPriority: Sendable, Equatable {
    /// All threads have this nice value, 0...19.
    case lowered(by: Int32)
    /// The threads get the time that no other thread wants. Only the first thread has a nice value instead, so that the
    /// pool's work goes on while other threads want all processors. Long works have threads of their own, with another
    /// nice value, so that no long work occupies the first thread.
    case spare(exceptFirst: Int32, andLong: Int32)

    var getsSpareTime: Bool { if case .spare = self { true } else { false } }

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

/// The works that one thread of a pool takes, and its share of the processors.
struct WorkerRole: Sendable, Equatable {
    var lane: WorkLane
    var priority: ThreadPriority
}

/// The works that a worker takes.
enum WorkLane: Int, Sendable, CaseIterable {
    case all
    /// Short works, and works that another worker began and for which it gets no processor.
    case first
    /// Short works, on a thread that may get no processor.
    case short
    /// Works that take longer than `WorkAdmission.longWork`.
    case long

    func takes(_ work: Work) -> Bool {
        switch self {
        case .all: true
        case .first, .short: !work.isLong
        case .long: work.isLong
        }
    }
}
