/// Limits that many objects refer to: a copy takes more than a kilobyte.
public final class SharedLimits: Sendable {
    public let values: Limits

    public init(_ values: Limits) { self.values = values }
}
