import Base
internal import CGiveWay

/// Computations of the calling thread that let other threads run in between (docs/decisions/0131).
enum GivingWay {
    /// The longest time that another thread waits for the computation, where it need not.
    static let turn = Duration.milliseconds(1)

    /// From now on the calling thread gives way every `turn`, until `time` and at most until `end`. Nil: it does not.
    @available(*, noasync, message: "belongs to the thread")
    static func begin(until time: Instant?) {
        if let time { give_way_begin(turn.microseconds * 1_000, time.nanoseconds) }
    }

    /// The calling thread gives way no longer.
    @available(*, noasync, message: "belongs to the thread")
    static func end() { give_way_end() }

    /// How often the calling thread gave way.
    static var count: Int64 { give_way_count() }
}
