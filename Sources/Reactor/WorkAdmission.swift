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

    /// `mayBeHeldUp`: whether the work gives way to one that lacks memory and was passed over too often. The first
    /// worker's does not: it has one work at a time, and what the others hold may stay held while they get no
    /// processor.
    func admits(_ work: Work, mayBeHeldUp: Bool) -> Bool {
        if lacksWorker(work) { return false }
        guard work.cost.memoryByteCount > 0 else { return true }
        if mayBeHeldUp && memoryByteCount > 0 && isHeldUp(work) { return false }
        return hasMemory(for: work)
    }

    /// Whether a work that lacks memory was passed over so often that it goes before this one.
    private func isHeldUp(_ work: Work) -> Bool {
        guard passes >= Self.passesMax, let waitsForMemory, waitsForMemory !== work else { return false }
        return !lacksWorker(waitsForMemory)
    }

    /// Whether the work is long and as many long works run as may.
    private func lacksWorker(_ work: Work) -> Bool { work.isLong && longCount >= longWorkersMax }

    /// Whether the work could begin if there were memory for it.
    func lacksMemoryOnly(_ work: Work) -> Bool { !lacksWorker(work) && !hasMemory(for: work) }

    func hasMemory(for work: Work) -> Bool {
        let (sum, overflow) = memoryByteCount.addingReportingOverflow(work.cost.memoryByteCount)
        return memoryByteCount == 0 || (!overflow && sum <= memoryMax)
    }

    /// `passedOver`: the first work in line, of any lane, that could not begin for lack of memory.
    mutating func began(_ work: Work, passedOver: Work?) {
        beganAgain(work)
        passes = passedOver == nil ? 0 : passedOver === waitsForMemory ? passes + 1 : 1
        waitsForMemory = passedOver
    }

    /// Notes that a work runs which was not taken from the line.
    mutating func beganAgain(_ work: Work) {
        memoryByteCount += work.cost.memoryByteCount
        memoryPeak = max(memoryPeak, memoryByteCount)
        if work.isLong { longCount += 1 }
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
