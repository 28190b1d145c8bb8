import Base
import Synchronization

/// The memory that all connections of the server hold, bounded by `Limits.connectionMemoryMax`: requests that are not
/// answered, and answers that are not taken.
///
/// Each loop counts its own connections, without a lock and without an atomic addition. Any thread may ask for the sum.
/// The bound is kept in steps, so that peers who read go on while others give way; see `Pressure`. The connections of a
/// line that holds no more than is free do not give way (`LineMemory`).
public final class ConnectionMemory: @unchecked Sendable {
    // Unchecked: `onExhausted` is set before the first connection is made. The rest is atomic or does not change.

    /// How much of the bound is held. Each step includes the measures of the steps before it.
    public enum Pressure: UInt8, Comparable, Sendable {
        case none
        /// Above a half. Nothing is kept for the next answer. A page of a list is refused if it would wait for a client
        /// that does not take the answers before it.
        case tight
        /// Above three quarters. A connection above `Limits.connectionMemoryShare` is not read from, unless its line
        /// holds little.
        case scarce
        /// Above seven eighths. The limit of `scarce` is a quarter of that share. Connections of a line that holds more
        /// than is free are not read for further requests. The connections that hold most for longest are closed until
        /// three quarters are held again.
        case exhausted

        public static func < (left: Pressure, right: Pressure) -> Bool { left.rawValue < right.rawValue }
    }

    /// A count on a cache line of its own: each is written by one loop.
    private final class Count: Sendable {
        let byteCount = Atomic<Int>(0)
        private let padding: InlineArray<7, Int> = InlineArray(repeating: 0)
    }

    private struct Line {
        let memory = LineMemory()
        var holderCount = 0
    }

    private let limits: Limits
    private let counts: [Count]
    private let step = Atomic<UInt8>(Pressure.none.rawValue)
    private let lines = Mutex<[Text: Line]>([:])
    private let peak = Atomic<Int>(0)
    /// The most that was held since memory was last given back to the system.
    private let crest = Atomic<Int>(0)
    var onExhausted: @Sendable () -> Void = {}
    /// Called when much memory was held and is free again.
    var onEbb: @Sendable () -> Void = {}
    private static let crestMin = 8 << 20

    init(limits: Limits, loopCount: Int) {
        self.limits = limits
        self.counts = (0..<loopCount).map { _ in Count() }
    }

    /// The memory that is held now.
    public var byteCount: Int { counts.reduce(0) { $0 + $1.byteCount.load(ordering: .relaxed) } }

    /// The most that was ever held.
    public var peakByteCount: Int { peak.load(ordering: .relaxed) }

    @inline(__always)
    public var pressure: Pressure { Pressure(rawValue: step.load(ordering: .relaxed)) ?? .none }

    /// The memory that a connection may hold before it is not read from, if its line holds more than is free. Nil while
    /// there is enough for all.
    @inline(__always)
    var holdingMax: Int? {
        switch pressure {
        case .none, .tight: nil
        case .scarce: limits.connectionMemoryShare
        case .exhausted: limits.connectionMemoryShare / 4
        }
    }

    /// The memory that is not held.
    var freeByteCount: Int { max(0, limits.connectionMemoryMax - byteCount) }

    /// Puts a connection into its line, where it stays until `leave`. Any thread.
    func enter(_ line: Text) -> LineMemory {
        lines.withLock { lines in
            var entry = lines[line] ?? Line()
            entry.holderCount += 1
            lines[line] = entry
            return entry.memory
        }
    }

    func leave(_ line: Text) {
        lines.withLock { lines in
            guard var entry = lines[line] else { return }
            entry.holderCount -= 1
            lines[line] = entry.holderCount > 0 ? entry : nil
        }
    }

    /// The lines of which a connection that is open, or whose calls have not ended, holds much, has held much, or was
    /// there while memory was short.
    var lineCount: Int { lines.withLock { $0.count } }

    /// Whether there is room for a page of a list. The page counts before it is made.
    var hasRoomForPage: Bool { hasRoom(for: limits.pageBytesMax + limits.connectionMemoryShare) }

    /// Whether there is room for `byteCount` more bytes, even if each of the other loops takes as much at this moment.
    /// Many loops never do that all at once, so no more than a quarter of the bound is kept for the others:
    /// otherwise a server with 256 loops would never have room for a request of more than a megabyte.
    func hasRoom(for byteCount: Int) -> Bool {
        let others = min(byteCount * (counts.count - 1), limits.connectionMemoryMax / 4)
        return self.byteCount + byteCount + others <= limits.connectionMemoryMax
    }

    /// The sum at which no further connections are closed.
    var reliefTarget: Int { limits.connectionMemoryMax / 4 * 3 }

    /// Adds to the count of a loop. Called from that loop only.
    func add(_ change: Int, loop: Int) {
        let count = counts[loop]
        count.byteCount.store(count.byteCount.load(ordering: .relaxed) + change, ordering: .relaxed)
        let held = update()
        if held > peak.load(ordering: .relaxed) { peak.store(held, ordering: .relaxed) }
        if change > 0, pressure == .exhausted { onExhausted() }
        noteCrest(held)
    }

    /// Updates `pressure`. If two loops add at once, the older sum may be the last one that is stored.
    @discardableResult
    func update() -> Int {
        let held = byteCount
        let pressure = pressure(at: held).rawValue
        if pressure != step.load(ordering: .relaxed) { step.store(pressure, ordering: .relaxed) }
        return held
    }

    private func noteCrest(_ held: Int) {
        let crest = crest.load(ordering: .relaxed)
        if held > crest { return self.crest.store(held, ordering: .relaxed) }
        guard crest > Self.crestMin, held < crest / 4 else { return }
        self.crest.store(held, ordering: .relaxed)
        onEbb()
    }

    private func pressure(at held: Int) -> Pressure {
        let eighth = limits.connectionMemoryMax / 8
        if held > 7 * eighth { return .exhausted }
        if held > 6 * eighth { return .scarce }
        return held > 4 * eighth ? .tight : .none
    }
}

/// The memory of the connections of one line (`Connection.line`), on all loops, that hold more than a quarter of
/// `Limits.connectionMemoryShare` each; while memory is short, also of those that hold less and whose memory changes.
/// The part that a connection has in the count may be wrong by that quarter.
///
/// A tenant whose requests wait for the server, such as batches of imports for the writer, is never closed for the
/// memory they hold. It holds three quarters of all memory and little more, because then its connections give way,
/// while those of other tenants are read from as if there were enough: a line gives way only if it holds more than is
/// free (Choudhury and Hahne, "Dynamic Queue Length Thresholds", 1998).
final class LineMemory: Sendable {
    private let held = Atomic<Int>(0)

    var byteCount: Int { held.load(ordering: .relaxed) }

    /// From the loop of the connection whose memory changed.
    func add(_ change: Int) { held.add(change, ordering: .relaxed) }
}

/// How much may wait at a connection: see `Limits`.
struct WaitingBounds {
    let pages: Int
    let unreadOutput: Int
    let requests: Int
    /// Output and requests together, without a credential.
    let unauthenticated: Int

    init(_ limits: Limits) {
        self.pages = limits.pagesWaitingMax
        self.unreadOutput = limits.unreadOutputMax
        self.requests = limits.waitingBytesMax
        self.unauthenticated = limits.waitingBytesMaxUnauthenticated
    }
}
