import Base

/// A request that waits in `WriteLines`.
protocol WaitingWrite: AnyObject {
    /// The tenant in whose line the request waits. It does not change.
    var tenant: Text { get }
    /// The nanoseconds that the request took, once it has ended.
    var cost: Int64 { get }
    /// The request's turn, set by the lines from the moment the request is taken until it has ended.
    var turn: WriteTurn? { get set }
}

/// Where a line stood when a request was taken from it.
struct WriteTurn {
    fileprivate let spent: Int64
    fileprivate let number: UInt64
}

/// The waiting writes, in one line per tenant. The tenant whose writes took the least time so far goes next.
///
/// This is start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) by the batch: a request counts as `costMin` when
/// it is taken, and as what it really took when it has ended. A tenant that comes back starts level with the tenant
/// that had the last turn: idle time earns no credit, and debts stay while anybody waits.
///
/// A tenant may take another place only while it holds fewer places than are free (Choudhury and Hahne, "Dynamic Queue
/// Length Thresholds", 1998). A tenant that is alone gets half of all places, and a tenant that comes later still finds
/// one, unless many tenants have filled theirs. The server's own work has no such bound, because there is little of it.
struct WriteLines<Request: WaitingWrite> {
    /// One tenant's requests, first in, first out.
    private final class Line {
        /// Nil where a request was taken.
        var requests: [Request?] = []
        var firstIndex = 0
        /// The time in nanoseconds that its requests took, on a scale of the lines' own.
        var spent: Int64
        /// Among equals, the line whose last turn is longest ago goes first.
        var turnNumber: UInt64 = 0
        /// The requests that were taken and have not ended.
        var runningCount = 0

        init(spent: Int64) { self.spent = spent }

        var count: Int { requests.count - firstIndex }

        /// The line that had less time goes first.
        func precedes(_ other: Line) -> Bool { (spent, turnNumber) < (other.spent, other.turnNumber) }

        func removeFirst() -> Request {
            // Proof: the caller saw `count > 0`, and a place is emptied only when `firstIndex` passes it.
            guard let request = requests[firstIndex].take() else { preconditionFailure("no request in a line") }
            firstIndex += 1
            if firstIndex == requests.count {
                requests.removeAll(keepingCapacity: requests.count < 64)
                firstIndex = 0
            } else if firstIndex >= 64, firstIndex > requests.count / 2 {
                requests.removeFirst(firstIndex)
                firstIndex = 0
            }
            return request
        }

        func putBack(_ request: Request) {
            if firstIndex > 0 {
                firstIndex -= 1
                requests[firstIndex] = request
            } else {
                requests.insert(request, at: 0)
            }
        }
    }

    static var costMin: Int64 { 10_000 }

    private let countMax: Int
    private var lines: [Text: Line] = [:]
    /// The lines with requests, the next one last; sorted by `take`.
    private var turns: [Line] = []
    private var isSorted = true
    /// The spent time of a line when its request, which has ended, was taken: the greatest so far.
    private var time: Int64 = 0
    private var turnCount: UInt64 = 0
    private var runningCount = 0
    /// When there are this many lines, those without requests and without debts are dropped.
    private var linesMax = 1_024
    private(set) var count = 0

    init(countMax: Int) { self.countMax = countMax }

    /// The tenants that have a line.
    var tenantCount: Int { lines.count }

    /// Returns false if the request's tenant may not take another place.
    mutating func add(_ request: Request) -> Bool {
        let line = line(of: request.tenant)
        guard line.count < countMax - count || request.tenant == WriteMeter.server else { return false }
        if line.count == 0 {
            line.spent = max(line.spent, time)
            enterTurns(line)
        }
        line.requests.append(request)
        count += 1
        return true
    }

    /// Takes out the next requests, at most `countMax`, in the order of their turns.
    mutating func take(countMax: Int) -> [Request] {
        var taken: [Request] = []
        taken.reserveCapacity(min(countMax, count))
        if !isSorted {
            turns.sort { $1.precedes($0) }
            isSorted = true
        }
        while taken.count < countMax, let line = turns.last {
            let request = line.removeFirst()
            request.turn = WriteTurn(spent: line.spent, number: line.turnNumber)
            taken.append(request)
            line.spent += Self.costMin
            line.runningCount += 1
            turnCount += 1
            line.turnNumber = turnCount
            if line.count == 0 {
                turns.removeLast()
            } else if turns.count > 1 {
                turns.removeLast()
                turns.insert(line, at: place(of: line))
            }
        }
        count -= taken.count
        runningCount += taken.count
        return taken
    }

    /// Puts requests back that were taken and not run: the next ones of their lines, in the order of `requests`.
    mutating func putBack(_ requests: ArraySlice<Request>) {
        for request in requests.reversed() {
            guard let turn = request.turn.take(), let line = lines[request.tenant] else { continue }
            isSorted = false
            if line.count == 0 { turns.append(line) }
            line.putBack(request)
            line.spent -= Self.costMin
            line.turnNumber = turn.number
            line.runningCount -= 1
            count += 1
            runningCount -= 1
        }
    }

    /// Charges requests that were taken and have ended with the time that each took.
    mutating func ended(_ requests: ArraySlice<Request>) {
        for request in requests {
            // A line whose requests run is not forgotten.
            guard let turn = request.turn.take(), let line = lines[request.tenant] else { continue }
            // Not when it was taken: most of what is taken may be put back, and debts would be forgotten.
            time = max(time, turn.spent)
            line.runningCount -= 1
            runningCount -= 1
            guard request.cost > Self.costMin else { continue }
            // A cost is the time that one body ran: a sum of them cannot overflow in the life of a process.
            line.spent += request.cost - Self.costMin
            isSorted = false
        }
        // The lines are idle: no tenant waits for another one, so all debts are dropped.
        if count == 0, runningCount == 0 { reset() }
    }

    private mutating func line(of tenant: Text) -> Line {
        if let line = lines[tenant] { return line }
        if lines.count >= linesMax { forgetIdleLines() }
        let line = Line(spent: time)
        lines[tenant] = line
        return line
    }

    private mutating func enterTurns(_ line: Line) {
        turnCount += 1
        line.turnNumber = turnCount
        if isSorted { turns.insert(line, at: place(of: line)) } else { turns.append(line) }
    }

    /// The index in the sorted `turns` where `line` belongs.
    private func place(of line: Line) -> Int {
        var range = turns.startIndex..<turns.endIndex
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = turns[middle].precedes(line) ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return range.lowerBound
    }

    private mutating func forgetIdleLines() {
        lines = lines.filter { _, line in line.count > 0 || line.runningCount > 0 || line.spent > time }
        linesMax = max(1_024, 2 * lines.count)
    }

    private mutating func reset() {
        lines.removeAll(keepingCapacity: lines.count < 1_024)
        (time, turnCount) = (0, 0)
    }
}
