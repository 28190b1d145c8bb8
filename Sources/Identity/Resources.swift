public import Base
import Rules
public import Store

/// The services that every owner in this target works with. Made once, at start.
public struct Resources: Sendable {
    public let store: Store
    /// The server's time. `clock` reads it.
    public let time: ServerClock
    public let clock: Clock
    /// The clock for rates and waits of this process. Nobody sets it and it never goes back; its values mean nothing
    /// after a restart.
    public let steadyClock: Clock
    /// The store's time mark, if an operator let the machine's clock override it at this start.
    public var acceptedClockOver: Timestamp?
    public let random: RandomSource
    private let sharedLimits: SharedLimits
    public var limits: Limits { sharedLimits.values }
    public let log: Log
    public let changes: ChangeHub
    let damagedRecords: DamagedRecords

    public init(
        store: Store, time: ServerClock, random: RandomSource, limits: Limits, log: Log
    ) {
        self.changes = ChangeHub(of: store)
        self.store = store
        self.time = time
        self.clock = time.clock
        self.steadyClock = time.steadyClock
        self.random = random
        self.sharedLimits = SharedLimits(limits)
        self.log = log
        self.damagedRecords = DamagedRecords(log: log, steadyClock: time.steadyClock)
    }
}

extension Resources {
    var quotaLimits: QuotaLimits { QuotaLimits(limits: limits, mapByteCount: store.mapByteCount) }

    /// Whether rows may be deleted because of their age: the clock is proven, and does not differ from the cluster's.
    var mayDeleteByAge: Bool { time.isProven && !store.isClockAway }

    /// The earliest time that it can be now. While this node's clock differs from the cluster's, no time is too early.
    var earliest: Timestamp { store.isClockAway ? .zero : time.earliest }
}
