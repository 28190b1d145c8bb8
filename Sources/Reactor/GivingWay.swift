import Base
internal import CGiveWay

/// Computations of the calling thread that let other threads run in between (docs/decisions/0131).
enum GivingWay {
    /// The longest time that another thread waits for the computation, where it need not.
    static let turn = Duration.milliseconds(1)

    /// Runs `body`, which gives way every `turn` until `end`. Nil: never.
    @available(*, noasync, message: "belongs to the thread")
    static func until<Result>(_ end: Instant?, _ body: () throws -> Result) rethrows -> Result {
        guard let end else { return try body() }
        give_way_begin(turn.microseconds * 1_000, end.nanoseconds)
        defer { give_way_end() }
        return try body()
    }

    /// How often the calling thread gave way.
    static var count: Int64 { give_way_count() }
}
