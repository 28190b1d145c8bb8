import Base
import Reactor
import Synchronization

/// A connection that holds memory and keeps the server waiting: it does not take its answers, does not send the rest of
/// its request, or gives its streams no credit.
struct MemoryHolding {
    let byteCount: Int
    let waitNanoseconds: Int64
    let isStranger: Bool
    /// Whether the connections of its line hold more than is free (`LineMemory`).
    var isOfHeavyLine = false

    /// The memory times the wait: much memory for long is worse than little memory for longer.
    var cost: Double { Double(byteCount) * Double(max(0, waitNanoseconds)) }
}

/// Closes the connections that cost most when `ConnectionMemory` is exhausted: first those without a credential on all
/// loops, then those of lines that hold more than is free, then the others. A connection that does not keep the server
/// waiting is never closed.
///
/// The relief goes from loop to loop, because each loop owns its connections. Only one round runs at a time.
final class MemoryRelief: Sendable {
    /// The connections that are closed together, in the order of the groups.
    private enum Group: Int {
        case strangers, heavyLines, everybody

        var next: Group? { Group(rawValue: rawValue + 1) }

        func has(_ holding: MemoryHolding) -> Bool {
            switch self {
            case .strangers: holding.isStranger
            case .heavyLines: holding.isOfHeavyLine
            case .everybody: true
            }
        }
    }

    private static let closedPerTurn = 64
    private static let giveBackAfter = Duration.seconds(1)
    private static let nextRoundAfter = Duration.milliseconds(50)

    private let memory: ConnectionMemory
    private let shares: [LoopShare]
    private let isAtWork = Atomic(false)
    private let isGivingBack = Atomic(false)

    init(memory: ConnectionMemory, shares: [LoopShare]) {
        self.memory = memory
        self.shares = shares
    }

    /// From any thread; does nothing while a round is under way.
    func begin() {
        let (isFirst, _) = isAtWork.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing)
        if isFirst { visit(0, .strangers) }
    }

    /// Gives free memory back to the system after a while, because more connections are usually about to close.
    func giveBackSoon() {
        let (isFirst, _) = isGivingBack.compareExchange(
            expected: false, desired: true, ordering: .acquiringAndReleasing)
        guard isFirst else { return }
        shares[0].loop.callOnce(after: Self.giveBackAfter) { [weak self] in
            Task {
                ProcessMemory.giveBack()
                self?.isGivingBack.store(false, ordering: .releasing)
            }
        }
    }

    private func visit(_ number: Int, _ group: Group) {
        guard memory.byteCount > memory.reliefTarget else { return end() }
        guard number < shares.count else {
            guard let next = group.next else { return end() }
            return visit(0, next)
        }
        shares[number].loop.run { [self] in
            closeWorst(of: group, on: shares[number])
            visit(number + 1, group)
        }
    }

    /// Ends a round. Peers may not have kept the server waiting for long enough yet, so rounds follow until enough
    /// memory is free.
    private func end() {
        isAtWork.store(false, ordering: .releasing)
        memory.update()
        guard memory.pressure == .exhausted else { return }
        shares[0].loop.callOnce(after: Self.nextRoundAfter) { [weak self] in self?.begin() }
    }

    private func closeWorst(of group: Group, on share: LoopShare) {
        let now = Instant.now
        let found = share.holders.values.compactMap { connection -> (Connection, Double)? in
            guard let holding = connection.assumeIsolated({ $0.holding(now: now) }), group.has(holding) else {
                return nil
            }
            return (connection, holding.cost)
        }
        for (connection, _) in found.sorted(by: { $0.1 > $1.1 }).prefix(Self.closedPerTurn) {
            guard memory.byteCount > memory.reliefTarget else { return }
            connection.assumeIsolated { $0.giveUpMemory() }
        }
    }
}
