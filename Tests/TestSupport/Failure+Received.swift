public import Base

extension Failure {
    /// Makes a failure as if a server had sent it: tests may invent reasons.
    public init(
        _ code: StatusCode, _ reason: String, _ message: String, metadata: [Entry] = [],
        violations: [FieldViolation] = [], retryAfter: Duration? = nil, guidance: Guidance? = nil
    ) {
        self.init(received: code, reason: reason, message)
        self.metadata = metadata
        self.violations = violations
        self.retryAfter = retryAfter
        self.guidance = guidance
    }
}
