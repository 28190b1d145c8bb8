package import Base

/// A queue with one line per tenant, first in, first out. The tenant that has had the least time goes next.
///
/// If the queue `sharesBySource`, a tenant's line is no longer first in, first out: the sources that its elements come
/// from share the tenant's turns (`SourceOrder`).
///
/// Each tenant has an account of the time that its elements took. The expected cost is charged when an element begins,
/// so that a tenant gets no second turn while its first element runs; `ended` replaces it by the real cost. A tenant
/// that comes back starts level with the tenant that has had least: idle time earns no credit, and debts stay. Every
/// element that begins counts as `costMin` at least, so that tenants with short elements take turns. This is start-time
/// fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996).
///
/// An owner may also charge elements when they have ended, by `charge` alone. An owner that charges nothing lets the
/// tenants take turns, whatever their elements cost.
package struct FairQueue<Element> {
    fileprivate struct Line {
        var elements: [Element] = []
        /// Nil: first in, first out.
        var order: SourceOrder?
        /// The sum of costs in nanoseconds, on the queue's own time scale.
        var spent: Int64
        /// The number of its turn in `turns`, where it stands while it has elements.
        var turnNumber: UInt64 = 0
        /// The tenant's elements that began and did not end.
        var runningCount = 0

        mutating func append(_ element: Element, source: Text, cost: Int64) {
            elements.insert(element, at: order?.insert(source, cost: cost) ?? elements.endIndex)
        }

        /// Takes out the element at `index`, which begins, or leaves without having begun.
        mutating func remove(at index: Int, begins: Bool) -> Element {
            if begins { order?.begin(at: index) } else { order?.leave(at: index) }
            return elements.remove(at: index)
        }

        mutating func removeAll(where matches: (Element) -> Bool) -> [Element] {
            var removed: [Element] = []
            for index in elements.indices.reversed() where matches(elements[index]) {
                removed.append(remove(at: index, begins: false))
            }
            return removed.reversed()
        }
    }

    private struct Turn {
        let spent: Int64
        /// Among equals, the tenant whose last turn is longest ago goes first.
        let number: UInt64
        let tenant: Text
    }

    static var costMin: Int64 { 1_000_000 }

    private let sharesBySource: Bool
    private var lines: [Text: Line] = [:]
    /// Tenants with elements, the next one last.
    private var turns: [Turn] = []
    /// The spent time of the tenant that had the last turn.
    private var time: Int64 = 0
    private var turnCount: UInt64 = 0
    private var runningCount = 0
    /// Whether anything was charged since the queue was idle.
    private var hasDebts = false
    /// Up to this number, the lines of an idle queue stay, with the memory for their next elements.
    private static var linesKept: Int { 16 }
    /// When there are this many lines, those without elements are dropped.
    private var linesMax = 1_024
    package private(set) var count = 0

    package init(sharesBySource: Bool = false) { self.sharesBySource = sharesBySource }

    func count(of tenant: Text) -> Int { lines[tenant]?.elements.count ?? 0 }
    func count(of tenant: Text, source: Text) -> Int { lines[tenant]?.order?.count(of: source) ?? 0 }
    /// The number of tenants that have a line or an account.
    var tenantCount: Int { lines.count }

    /// `source` and `cost`, the nanoseconds that the element is expected to take, matter if the queue `sharesBySource`.
    package mutating func append(_ element: Element, tenant: Text, source: Text = .empty, cost: Int64 = 0) {
        if lines.count >= linesMax { forgetIdleLines() }
        count += 1
        let wasWaiting = count(of: tenant) > 0
        let newLine = newLine
        lines[tenant, default: newLine].append(element, source: source, cost: cost)
        guard !wasWaiting else { return }
        lines[tenant]!.spent = max(lines[tenant]!.spent, newLine.spent)
        enterTurns(tenant)
    }

    /// Takes out the first element that `mayBegin` accepts, from the first tenant that has one and that `mayServe`
    /// accepts. `runningCount` is the number of the tenant's running elements. The tenant then goes behind the tenants
    /// that have had as much time.
    ///
    /// What holds for all elements of a tenant belongs into `mayServe`: a tenant that is refused there costs one look,
    /// and not one for each of its elements.
    package mutating func popFirst(
        where mayBegin: (Element, _ runningCount: Int) -> Bool = { _, _ in true },
        from mayServe: (_ runningCount: Int) -> Bool = { _ in true }
    ) -> Element? {
        var place: Int?
        let index = turns.lastIndex { turn in
            let line = lines[turn.tenant]!
            guard mayServe(line.runningCount) else { return false }
            place = line.elements.firstIndex { mayBegin($0, line.runningCount) }
            return place != nil
        }
        guard let index, let place else { return nil }
        let turn = turns.remove(at: index)
        time = max(time, turn.spent)
        let element = lines[turn.tenant]!.remove(at: place, begins: true)
        count -= 1
        if !lines[turn.tenant]!.elements.isEmpty { enterTurns(turn.tenant) }
        return element
    }

    /// Charges `cost` nanoseconds for an element that was taken out and begins now.
    package mutating func began(tenant: Text, cost: Int64) {
        runningCount += 1
        let newLine = newLine
        lines[tenant, default: newLine].runningCount += 1
        charge(tenant, max(Self.costMin, cost))
    }

    /// The element for which `cost` was charged has ended; it took `actual`.
    package mutating func ended(tenant: Text, cost: Int64, actual: Int64) {
        runningCount -= 1
        lines[tenant]!.runningCount -= 1
        // The queue is idle: no tenant waits for another one, so all debts are dropped.
        if runningCount == 0 && count == 0 { return reset() }
        charge(tenant, max(Self.costMin, actual) - max(Self.costMin, cost))
    }

    /// Charges `nanoseconds` for work of the tenant that is done, whether it stood in the queue or not.
    package mutating func charge(tenant: Text, nanoseconds: Int64) {
        if lines.count >= linesMax { forgetIdleLines() }
        let newLine = newLine
        // A tenant that comes back starts level here, too: otherwise it would lose the charge when it waits.
        if count(of: tenant) == 0, lines[tenant, default: newLine].runningCount == 0 {
            lines[tenant, default: newLine].spent = max(lines[tenant, default: newLine].spent, newLine.spent)
        }
        charge(tenant, nanoseconds)
    }

    /// Drops all debts if nothing waits and nothing runs, as `ended` does.
    package mutating func dropDebtsIfIdle() {
        if hasDebts, runningCount == 0, count == 0 { reset() }
    }

    /// Takes out the tenant's first element that matches.
    package mutating func remove(tenant: Text, where matches: (Element) -> Bool) -> Element? {
        guard let index = lines[tenant]?.elements.firstIndex(where: matches) else { return nil }
        return remove(at: index, of: tenant)
    }

    /// Takes out the last element of the source that has most elements in the tenant's line, if these are at least
    /// `countMin`. Needs `sharesBySource`.
    mutating func removeLast(ofLongestSourceIn tenant: Text, countMin: Int) -> Element? {
        guard let index = lines[tenant]?.order?.lastOfLongest(countMin: countMin) else { return nil }
        return remove(at: index, of: tenant)
    }

    /// The tenant with most elements, other than `excepted`, if these are at least `countMin`.
    func longestTenant(except excepted: Text, countMin: Int) -> Text? {
        var (longest, longestCount): (Text?, Int) = (nil, countMin - 1)
        for turn in turns where turn.tenant != excepted && count(of: turn.tenant) > longestCount {
            (longest, longestCount) = (turn.tenant, count(of: turn.tenant))
        }
        return longest
    }

    private mutating func remove(at index: Int, of tenant: Text) -> Element {
        if lines[tenant]!.elements.count == 1 { leaveTurns(tenant) }
        count -= 1
        return lines[tenant]!.remove(at: index, begins: false)
    }

    /// Takes out every element that matches.
    mutating func removeAll(where matches: (Element) -> Bool) -> [Element] {
        var removed: [Element] = []
        for turn in turns.reversed() { removed += lines[turn.tenant]!.removeAll(where: matches) }
        turns.removeAll { lines[$0.tenant]!.elements.isEmpty }
        count -= removed.count
        return removed
    }

    // MARK: Accounts

    /// The spent time at which a tenant starts if it is new or comes back.
    private var least: Int64 { min(time, turns.last?.spent ?? time) }

    private var newLine: Line { Line(order: sharesBySource ? SourceOrder() : nil, spent: least) }

    private mutating func charge(_ tenant: Text, _ difference: Int64) {
        guard difference != 0 else { return }
        hasDebts = true
        let isWaiting = !lines[tenant]!.elements.isEmpty
        if isWaiting { leaveTurns(tenant) }
        let (spent, overflow) = lines[tenant]!.spent.addingReportingOverflow(difference)
        lines[tenant]!.spent = overflow ? .max : spent
        if isWaiting { enterTurns(tenant) }
    }

    private mutating func enterTurns(_ tenant: Text) {
        turnCount += 1
        lines[tenant]!.turnNumber = turnCount
        let turn = Turn(spent: lines[tenant]!.spent, number: turnCount, tenant: tenant)
        turns.insert(turn, at: place(turn.spent, turn.number))
    }

    private mutating func leaveTurns(_ tenant: Text) {
        turns.remove(at: place(lines[tenant]!.spent, lines[tenant]!.turnNumber))
    }

    /// The index of the turn with these values, or the index where it belongs.
    private func place(_ spent: Int64, _ number: UInt64) -> Int {
        var range = turns.startIndex..<turns.endIndex
        while let middle = range.isEmpty ? nil : range.lowerBound + range.count / 2 {
            if (turns[middle].spent, turns[middle].number) > (spent, number) {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        return range.lowerBound
    }

    private mutating func forgetIdleLines() {
        lines = lines.filter { !$0.value.elements.isEmpty || $0.value.runningCount > 0 || $0.value.spent > least }
        linesMax = max(1_024, 2 * lines.count)
    }

    private mutating func reset() {
        (time, turnCount, hasDebts) = (0, 0, false)
        guard lines.count <= Self.linesKept else { return lines.removeAll(keepingCapacity: lines.count < 1_024) }
        var index = lines.startIndex
        while index != lines.endIndex {
            lines.values[index].spent = 0
            lines.formIndex(after: &index)
        }
    }
}

extension FairQueue: Sendable where Element: Sendable {}
extension FairQueue.Line: Sendable where Element: Sendable {}
