/// Decides when a node asks for a turn, because other nodes' entries come before its own again and again.
///
/// It is pure: times are passed in, by any steady clock.
public struct Outruns: Sendable {
    private let countMin: Int
    private let timeMin: Duration
    private let pause: Duration
    private var count = 0
    /// When the first of these entries was sent.
    private var began: Duration?
    private var askedAt: Duration?

    /// A node asks if it was outrun `countMin` times in a row, and for at least `timeMin`. If that did not help, the
    /// node asks again after `pause`.
    public init(countMin: Int, timeMin: Duration, pause: Duration) {
        (self.countMin, self.timeMin, self.pause) = (countMin, timeMin, pause)
    }

    /// Another node's entry came before one that was sent at `sent`. Returns whether the node asks for a turn.
    public mutating func isTurnWanted(after sent: Duration, at now: Duration) -> Bool {
        // The count stops at its bound: nothing else depends on it.
        count = min(count + 1, countMin)
        let first = began ?? sent
        began = first
        guard count >= countMin, now - first >= timeMin else { return false }
        if let askedAt, now - askedAt < pause { return false }
        askedAt = now
        return true
    }

    /// An entry of the node got its place.
    public mutating func end() { (count, began, askedAt) = (0, nil, nil) }
}
