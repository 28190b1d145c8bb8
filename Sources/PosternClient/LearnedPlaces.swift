import Base

/// How many calls a server takes on a connection, as its refusals tell.
///
/// A server refuses a call above its limit, and counts calls that were cancelled until their work has stopped. So a
/// refusal may come while few calls are in flight, and says nothing about the time after. What was learned is therefore
/// never below the places that every server has, and is forgotten after a while.
struct LearnedPlaces {
    /// Long enough that a server with a lower limit than it said refuses few calls.
    static let lifetime = Duration.seconds(30)

    /// The number of calls that may be in flight. `Int.max`: nothing was learned.
    private(set) var count = Int.max
    private var until = Instant.distantFuture

    /// The server refused a call while `others` were in flight. `least`: the places that every server has.
    mutating func refused(beside others: Int, least: Int, now: Instant) {
        (count, until) = (max(others, least), now.advanced(by: Self.lifetime))
    }

    /// Forgets what was learned too long ago.
    mutating func forget(now: Instant) {
        if until <= now { self = LearnedPlaces() }
    }
}
