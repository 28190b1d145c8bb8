public import Base
public import Store

/// What every owner in this target works with; made once, at start.
public struct Resources: Sendable {
    public let store: Store
    public let clock: Clock
    public let random: RandomSource
    public let limits: Limits
    public let log: Log
    /// Must be what the store's `onCommit` calls.
    public let changes: ChangeHub

    public init(
        store: Store, clock: Clock, random: RandomSource, limits: Limits, log: Log, changes: ChangeHub = ChangeHub()
    ) {
        self.changes = changes
        self.store = store
        self.clock = clock
        self.random = random
        self.limits = limits
        self.log = log
    }
}
