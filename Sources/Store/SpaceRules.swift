import Base

/// How many pages are kept in reserve, and which writes may use them. It is pure. All counts are pages.
struct SpaceRules: Sendable {
    let reserveMin: Int
    let reserveMax: Int
    /// Pages that a commit may take for LMDB's list of free pages, after the count was asked for.
    let slack = 64

    init(_ limits: Limits, pageByteCount: Int) {
        self.reserveMin = limits.storeReserveMin / pageByteCount
        self.reserveMax = limits.storeReserveMax / pageByteCount
    }

    /// A sixteenth of the pages that the store has reached, within bounds, and never more than an eighth of the limit.
    /// A transaction that deletes needs it, because it copies the pages it changes before the old ones are free.
    func reserve(reached: Int, limit: Int) -> Int {
        min(max(reached / 16, reserveMin), reserveMax, limit / 8)
    }

    /// How many of `reserve` a write must leave free.
    func floor(_ purpose: WritePurpose, reserve: Int) -> Int {
        switch purpose {
        case .growth: reserve
        case .session: reserve / 2
        case .relief: reserve / 8
        case .removal: 0
        }
    }

    /// How much the file grows at once: an eighth of itself, 1 MiB to 64 MiB.
    func step(reached: Int) -> Int { min(max(reached / 8, 256), 16_384) }

    /// The lengths to try, in this order, if the file has to reach page `reached` and should have `reserve` beyond it:
    /// a nearly full disk has room for less than a step.
    func growthTargets(reached: Int, reserve: Int, limit: Int) -> [Int] {
        let beyond = [reserve + step(reached: reached), reserve, reserve / 2, reserve / 4, reserve / 8, 0]
        var targets: [Int] = []
        for target in beyond.map({ min(reached + $0, limit) }) where target != targets.last { targets.append(target) }
        return targets
    }
}
