import Base

/// The expected cost of a piece of work.
public struct WorkCost: Sendable, Equatable {
    /// The processor time. A rough figure will do: when the work has ended, its tenant pays for the real time.
    public var time: Duration
    /// The most memory that the work holds at a time.
    public var memoryByteCount: Int

    public init(time: Duration, memoryByteCount: Int = 0) {
        self.time = time
        self.memoryByteCount = memoryByteCount
    }

    public static let none = WorkCost(time: .zero)

    var nanoseconds: Int64 { time.microseconds.multipliedReportingOverflow(by: 1_000).partialValue }
}

/// Decides which work may begin beside the running works. It is pure.
///
/// - Together they hold at most `memoryMax`; a work that is larger runs while no other work holds memory.
/// - One tenant has at most half of the workers while another tenant could use one.
/// - One worker never takes a long work, so that short works need not wait for the end of a long one.
struct WorkAdmission: Sendable {
    let memoryMax: Int
    private let workersPerTenant: Int
    private let longWorkersMax: Int

    private(set) var memoryByteCount = 0
    private(set) var memoryPeak = 0
    private var longCount = 0
    /// The work that lacks memory, and how often other work began before it. After `passesMax` times, no other work
    /// that needs memory begins, so that this work is not put off for ever.
    private var waitsForMemory: Work?
    private var passes = 0

    static let longWork = Duration.milliseconds(100)
    static let passesMax = 16

    init(workers: Int, memoryMax: Int) {
        self.memoryMax = memoryMax
        self.workersPerTenant = max(1, workers / 2)
        self.longWorkersMax = Self.longWorkersMax(of: workers)
    }

    static func longWorkersMax(of workers: Int) -> Int { max(1, workers - 1) }

    /// Whether its tenant may have another worker while other tenants wait.
    func isWithinShare(runningCount: Int) -> Bool { runningCount < workersPerTenant }

    func admits(_ work: Work) -> Bool {
        if work.isLong && longCount >= longWorkersMax { return false }
        guard work.cost.memoryByteCount > 0 else { return true }
        if memoryByteCount > 0, passes >= Self.passesMax, let waitsForMemory, waitsForMemory !== work { return false }
        return hasMemory(for: work)
    }

    func hasMemory(for work: Work) -> Bool {
        let (sum, overflow) = memoryByteCount.addingReportingOverflow(work.cost.memoryByteCount)
        return memoryByteCount == 0 || (!overflow && sum <= memoryMax)
    }

    /// `passedOver`: the first work in line that could not begin for lack of memory.
    mutating func began(_ work: Work, passedOver: Work?) {
        memoryByteCount += work.cost.memoryByteCount
        memoryPeak = max(memoryPeak, memoryByteCount)
        if work.isLong { longCount += 1 }
        passes = passedOver == nil ? 0 : passedOver === waitsForMemory ? passes + 1 : 1
        waitsForMemory = passedOver
    }

    /// Notes that the work left the line without having begun. From now on, nothing is held up for it.
    mutating func left(_ work: Work) {
        guard waitsForMemory === work else { return }
        waitsForMemory = nil
        passes = 0
    }

    mutating func ended(_ work: Work) {
        memoryByteCount -= work.cost.memoryByteCount
        if work.isLong { longCount -= 1 }
    }
}
