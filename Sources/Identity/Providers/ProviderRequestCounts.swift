public import Base
import Federation

/// The outcomes of the requests to identity providers so far, of all tenants together.
public struct ProviderRequestCounts: Sendable {
    public let answered: UInt64
    /// The provider refused the credential in the request.
    public let refused: UInt64
    /// The provider could not be asked, or gave no valid answer.
    public let failed: UInt64
    public let duration: DurationHistogram.Snapshot

    init(_ counts: ProviderCounts) {
        answered = counts.answered.value
        refused = counts.refused.value
        failed = counts.failed.value
        duration = counts.duration.snapshot
    }
}
