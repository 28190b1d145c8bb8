/// Lets the changes of an actor run one at a time, in order. It is state of the actor, which alone touches it.
///
/// ```swift
/// private var turns = TurnQueue()
///
/// func change() async throws {
///     if let turn = turns.take() { try? await turn.value() }
///     defer { turns.pass() }
///     …
/// }
/// ```
public struct TurnQueue: Sendable {
    private var isTaken = false
    private var waiting: [Promise<Void>] = []
    /// How many of `waiting` had their turn.
    private var passedCount = 0

    public init() {}

    /// Nil if it is the caller's turn. Otherwise a promise that succeeds when the turn comes; it never fails. A
    /// cancelled task waits as well, because turns are short.
    public mutating func take() -> Promise<Void>? {
        guard isTaken else {
            isTaken = true
            return nil
        }
        let turn = Promise<Void>()
        waiting.append(turn)
        return turn
    }

    /// Ends the caller's turn.
    public mutating func pass() {
        guard passedCount < waiting.count else {
            isTaken = false
            waiting.removeAll(keepingCapacity: false)
            passedCount = 0
            return
        }
        let next = waiting[passedCount]
        passedCount += 1
        // A queue that is never empty would keep all that ever waited in it.
        if passedCount >= 64, passedCount * 2 >= waiting.count {
            waiting.removeFirst(passedCount)
            passedCount = 0
        }
        next.succeed(())
    }

    /// How many callers are remembered, those that had their turn included.
    var rememberedCount: Int { waiting.count }

    /// How many callers wait for their turn.
    public var waitingCount: Int { waiting.count - passedCount }
}
