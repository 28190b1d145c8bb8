import Base

/// Answers of ended works, which wait for the answers of the next works. `WorkQueue.group` says which ones.
struct HeldAnswers: Sendable {
    /// Calling it answers the caller of a work.
    typealias Answer = @Sendable () -> Void

    private var held: [Answer] = []
    /// The earliest deadline of the held answers' works.
    private var deadline = Instant.distantFuture
    /// Answers to give now. They stay here until a worker takes them one by one: a worker that gets only spare time may
    /// lose its processor after the first one, and others then give the rest.
    private var due: [Answer] = []

    var count: Int { held.count }
    var hasDue: Bool { !due.isEmpty }

    mutating func hold(_ answer: @escaping Answer, of work: Work) {
        held.append(answer)
        deadline = min(deadline, work.deadline)
    }

    /// Before a work that is long, or that may last until the deadline of a held answer.
    mutating func releaseIfTheyCannotWait(for work: Work, now: Instant) {
        guard !held.isEmpty else { return }
        if work.isLong || now.advanced(by: ProcessorDemand.timeMax(of: work)) >= deadline { release() }
    }

    /// Makes the held answers due.
    mutating func release() {
        due += held
        held.removeAll(keepingCapacity: true)
        deadline = .distantFuture
    }

    /// The next answer to give, for any worker.
    mutating func takeDue() -> Answer? { due.isEmpty ? nil : due.removeFirst() }
}
