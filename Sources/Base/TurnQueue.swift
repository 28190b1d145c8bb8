/// The order of an actor's changes, one at a time: state of the actor, which alone touches it.
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

    /// Nil: it is the caller's turn. Otherwise the promise, which only ever succeeds, tells when it is. A cancelled
    /// task waits as well: a turn is short.
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
        next.succeed(())
    }

    /// How many wait.
    public var waitingCount: Int { waiting.count - passedCount }
}
