import Base

extension Failure {
    /// The refusal for a stream that would begin behind the newest record. Without it, the stream would leave out the
    /// records that get the sequences up to there.
    static let beyondLogEnd = Failure.invalid(
        .invalidSequence, field: "after_sequence",
        "the log is shorter than that: it was restored, or the tenant was made anew; begin with -1 or 0")
}
