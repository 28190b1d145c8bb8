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

    // Pages of lists, and work that takes as long: one per turn, so that a loop works for one page at most before it
    // looks at all its connections again. The lines of all tenants take turns.
    private var waitingPages = FairQueue<Promise<Void>>()
    private var isPageTurnTaken = false
    /// Pages that were begun, for tests.
    private(set) var pageCount: UInt64 = 0

    /// The handshakes that went on in this turn, and the time that they took.
    private var handshakeCount = 0
    private var handshakeNanoseconds: Int64 = 0

    // Sockets are read as they become ready, until that has taken the time below. The others wait here, and so do
    // connections with more input than one turn decodes; each turn goes on with them for as long again. The line that
    // has had the least time goes first, so that nobody waits for another tenant's thousands of connections, or for
    // requests that take a hundred times as long.
    private static let readingMax = Duration.milliseconds(2)
    /// Each read in turn counts as this much at least. It is short, so that the many connections of a line whose
    /// requests are short are all read before another line's next long request.
    private static let readCostMin: Int64 = 20_000
    /// A read of a socket that became ready is charged only from here on: most are short, and a charge costs as much as
    /// a twentieth of a request. What is not charged in a turn is `readingMax` at most.
    static let readChargedMin: Int64 = 100_000
    private var readers = FairQueue<Connection>()
    /// True while connections are read that waited. Their time is charged as a whole.
    private var isReadingInTurn = false
    /// When the sockets that became ready in this turn have taken their time. Nil before the first.
    private var readingEnds: Instant?
    private(set) var isTurnFull = false
    private var isTurnWatched = false
    /// While many wait, a connection reads no more than this, because the rest of what it read waits with it.
    private static let manyReaders = 64
    private static let readByteCountOfMany = 8 * 1024
    private static let readByteCount = 64 * 1024

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

    // MARK: Reading

    /// The most that one read takes. `ofMany`: as if many waited, for a connection that gives way.
    func readByteCount(ofMany: Bool) -> Int {
        ofMany || readers.count >= Self.manyReaders ? Self.readByteCountOfMany : Self.readByteCount
    }

    /// A connection has read its socket.
    func noteRead(at now: Instant) {
        guard !isReadingInTurn else { return }
        guard let readingEnds else { return beginReading(at: now) }
        if now >= readingEnds { isTurnFull = true }
    }

    private func beginReading(at now: Instant) {
        readingEnds = now.advanced(by: Self.readingMax)
        watchTurn()
    }

    /// A connection of this line has decoded input for so long.
    func noteDecoding(nanoseconds: Int64, line: Text) {
        guard !isReadingInTurn else { return }
        readers.charge(tenant: line, nanoseconds: nanoseconds)
        watchTurn()
    }

    /// Calls the connection's `readInTurn` when it is the turn of its line.
    func waitToRead(_ connection: Connection, line: Text) {
        readers.append(connection, tenant: line)
        watchTurn()
    }

    private func watchTurn() {
        guard !isTurnWatched else { return }
        isTurnWatched = true
        loop.atEndOfTurn(readTurns)
    }

    private lazy var readTurns = TurnEnd(self) { $0.readTurnEnded() }

    private func readTurnEnded() {
        isTurnWatched = false
        if readers.count > 0 { readWaiting() }
        readers.dropDebtsIfIdle()
        readingEnds = nil
        isTurnFull = false
        if readers.count > 0 { watchTurn() }
    }

    private func readWaiting() {
        isReadingInTurn = true
        defer { isReadingInTurn = false }
        var now = Instant.now
        let end = now.advanced(by: Self.readingMax)
        while now < end, let connection = readers.popFirst() {
            let began = now
            let line = connection.assumeIsolated { connection in
                // Reading may change the line: a credential comes.
                let line = connection.line
                connection.readInTurn()
                return line
            }
            now = .now
            readers.charge(tenant: line, nanoseconds: max(Self.readCostMin, now.nanoseconds(since: began)))
        }
    }

    // MARK: Handshakes

    /// Whether one more stream may go on with its handshake in this turn. One may in each turn; how long it takes
    /// depends on the certificate's key, and is not known before.
    func takeHandshakeTurn() -> Bool {
        if handshakeCount == 0 { loop.atEndOfTurn(handshakeTurns) }
        let taken = Duration.nanoseconds(handshakeNanoseconds)
        guard handshakeCount == 0 || taken < limits.values.tlsHandshakeTimePerTurnMax else { return false }
        handshakeCount += 1
        return true
    }

    /// A connection of this line has read a stream that was not open yet.
    func noteHandshake(from began: Instant, to ended: Instant, line: Text) {
        let nanoseconds = ended.nanoseconds(since: began)
        handshakeNanoseconds += nanoseconds
        guard !isReadingInTurn else { return }
        // The time counts among that of the sockets that became ready.
        if readingEnds == nil { beginReading(at: began) }
        if nanoseconds >= Self.readChargedMin { readers.charge(tenant: line, nanoseconds: nanoseconds) }
    }

    private lazy var handshakeTurns = TurnEnd(self) { ($0.handshakeCount, $0.handshakeNanoseconds) = (0, 0) }

    // MARK: Pages

    /// Takes this turn's page if nobody has it and nobody waits.
    func takePageTurn() -> Bool {
        guard !isPageTurnTaken else { return false }
        beginPageTurn()
        return true
    }

    /// Returns in a turn whose page belongs to the caller, who waits in this line. Throws `CancellationError`.
    func pageTurn(line: Text) async throws {
        let place = Promise<Void>()
        waitingPages.append(place, tenant: line)
        do {
            try await place.cancellableValue()
        } catch {
            // If the place got its turn meanwhile, it is no longer in the queue, and that turn has no page.
            _ = waitingPages.remove(tenant: line) { $0 === place }
            throw error
        }
    }

    /// While somebody waits, each turn is taken as it begins, so that `takePageTurn` overtakes nobody.
    public func turnEnded() {
        isPageTurnTaken = false
        guard let next = waitingPages.popFirst() else { return }
        beginPageTurn()
        next.succeed(())
    }

    private func beginPageTurn() {
        isPageTurnTaken = true
        pageCount += 1
        loop.atEndOfTurn(self)
    }
}

/// Calls a closure at the end of a turn. `LoopShare` itself can be called for one purpose only, its pages.
private final class TurnEnd: EndOfTurn {
    private weak var share: LoopShare?
    private let body: (LoopShare) -> Void

    init(_ share: LoopShare, _ body: @escaping (LoopShare) -> Void) { (self.share, self.body) = (share, body) }

    func turnEnded() {
        guard let share else { return }
        body(share)
    }
}
