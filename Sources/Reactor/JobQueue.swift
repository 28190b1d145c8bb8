/// A queue, first in, first out, without an allocation per job and without moving waiting jobs: one array fills while
/// the jobs of the other run, then they change places.
struct JobQueue: ~Copyable {
    private var filling: [UnownedJob] = []
    private var emptying: [UnownedJob] = []
    private var next = 0

    var isEmpty: Bool { next == emptying.count && filling.isEmpty }

    mutating func append(_ job: UnownedJob) { filling.append(job) }

    mutating func append(contentsOf jobs: [UnownedJob]) { filling.append(contentsOf: jobs) }

    mutating func popFirst() -> UnownedJob? {
        if next == emptying.count {
            if filling.isEmpty { return nil }
            emptying.removeAll(keepingCapacity: true)
            swap(&filling, &emptying)
            next = 0
        }
        defer { next += 1 }
        return emptying[next]
    }
}
