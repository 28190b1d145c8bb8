import Base
public import Reactor

/// The data that the connections of one loop share. Used on that loop only.
public final class LoopShare: EndOfTurn, @unchecked Sendable {
    // Unchecked: only connections of one loop use it, and they run on that loop's thread.

    nonisolated let loop: EventLoop
    let memory: ConnectionMemory
    let limits: SharedLimits
    private let number: Int
    /// The buffer that the connections read into, one after the other.
    var buffer = ByteBuffer()
    /// Connections that hold enough to be worth closing when memory is needed.
    private(set) var holders: [UInt64: Connection] = [:]

    // Pages of lists: one per turn, so that a loop works for one page at most before it looks at all its connections
    // again. The line is first come, first served; a connection stands in it once.
    private var line: [Promise<Void>] = []
    private var lineStart = 0
    private var isTurnTaken = false
    /// Pages that were begun, for tests.
    private(set) var pageCount: UInt64 = 0

    // The handshakes that went on in this turn: only a few may per turn.
    private var opened = 0

    init(of loop: EventLoop, number: Int, memory: ConnectionMemory, limits: SharedLimits) {
        self.loop = loop
        self.number = number
        self.memory = memory
        self.limits = limits
    }

    func add(_ change: Int) { memory.add(change, loop: number) }

    func setHolder(_ connection: Connection, _ isHolder: Bool) {
        holders[connection.id] = isHolder ? connection : nil
    }

    /// Whether one more stream may go on with its handshake in this turn.
    func takeHandshakeTurn() -> Bool {
        if opened == 0 { loop.atEndOfTurn(handshakeTurns) }
        guard opened < limits.values.tlsHandshakesPerTurnMax else { return false }
        opened += 1
        return true
    }

    private lazy var handshakeTurns = HandshakeTurns(self)

    fileprivate func handshakeTurnEnded() { opened = 0 }

    /// Takes this turn's page if nobody has it and nobody waits.
    func takePageTurn() -> Bool {
        guard !isTurnTaken else { return false }
        beginTurn()
        return true
    }

    /// Returns in a turn whose page belongs to the caller. Throws `CancellationError`, which leaves that turn without a
    /// page.
    func pageTurn() async throws {
        let place = Promise<Void>()
        line.append(place)
        try await place.cancellableValue()
    }

    /// While somebody waits, each turn is taken as it begins, so that `takePageTurn` overtakes nobody.
    public func turnEnded() {
        isTurnTaken = false
        guard lineStart < line.count else { return }
        let next = line[lineStart]
        lineStart += 1
        if lineStart == line.count {
            line.removeAll(keepingCapacity: line.count <= 64)
            lineStart = 0
        }
        beginTurn()
        next.succeed(())
    }

    private func beginTurn() {
        isTurnTaken = true
        pageCount += 1
        loop.atEndOfTurn(self)
    }
}

/// Resets the count of handshakes at the end of a turn.
private final class HandshakeTurns: EndOfTurn {
    private weak var share: LoopShare?

    init(_ share: LoopShare) { self.share = share }

    func turnEnded() { share?.handshakeTurnEnded() }
}
