public import Base

/// What became of the requests to identity providers, of all tenants together: their number has no bound.
public final class ProviderCounts: Sendable {
    /// The provider answered as it should.
    public let answered = Counter()
    /// It refused what it was asked with: a token, a code, a secret.
    public let refused = Counter()
    /// It could not be asked, or its answer is none.
    public let failed = Counter()
    public let duration = DurationHistogram()

    public init() {}

    /// Notes a request that took so long. Nothing of one whose caller went away, or that a full pool did not take.
    func note(_ outcome: Result<Void, any Error>, nanoseconds: Int64) {
        switch outcome {
        case .success: answered.add()
        case .failure(FederationError.rejected): refused.add()
        case .failure(FederationError.overloaded): return
        case .failure(let error) where error is FederationError: failed.add()
        case .failure: return
        }
        duration.record(nanoseconds: nanoseconds)
    }
}
