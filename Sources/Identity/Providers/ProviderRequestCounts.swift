public import Base
import Federation

/// What became of the requests to identity providers so far, of all tenants together.
public struct ProviderRequestCounts: Sendable {
    public let answered: UInt64
    /// The provider refused what it was asked with.
    public let refused: UInt64
    /// It could not be asked, or its answer is none.
    public let failed: UInt64
    public let duration: DurationHistogram.Snapshot

    init(_ counts: ProviderCounts) {
        answered = counts.answered.value
        refused = counts.refused.value
        failed = counts.failed.value
        duration = counts.duration.snapshot
    }
}
