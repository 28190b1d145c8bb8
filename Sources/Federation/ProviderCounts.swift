public import Base

/// Counts the outcomes of requests to identity providers, for all tenants together, because providers are unbounded.
public final class ProviderCounts: Sendable {
    /// The provider answered as it should.
    public let answered = Counter()
    /// The provider refused the request's credential: a token, a code, a secret.
    public let refused = Counter()
    /// The provider could not be asked, or its answer made no sense.
    public let failed = Counter()
    public let duration = DurationHistogram()

    public init() {}

    /// Notes a request and its time. Does not note a request whose caller went away, or that a full pool did not take.
    func note(_ outcome: Result<Void, any Error>, nanoseconds: Int64) {
        switch outcome {
        // The token was read, and is another application's.
        case .success, .failure(FederationError.otherClient): answered.add()
        case .failure(FederationError.rejected): refused.add()
        case .failure(FederationError.overloaded): return
        case .failure(let error) where error is FederationError: failed.add()
        case .failure: return
        }
        duration.record(nanoseconds: nanoseconds)
    }
}
