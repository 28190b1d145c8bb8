public import Base
public import Messages
public import Store

extension ReadTransaction {
    /// A page of the tenant's events that fulfil the conditions.
    public func events(
        _ filter: EventFilter, tenantID: Text, from start: EventStart, reversed: Bool, bounds: PageBounds
    ) throws -> EventPage {
        let kinds = Set(filter.kinds)
        return try events(tenant: tenantID, from: start, reversed: reversed, bounds: bounds) { event in
            try filter.matches(EventRecord(stored: event.payload), kinds: kinds)
        }
    }

    /// The sequence of the tenant's newest event; 0 when there is none.
    public func newestEventSequence(tenantID: Text) throws -> UInt64 { try eventHead(tenant: tenantID).sequence }

    /// How many events of the tenant's log are kept. Events are numbered one by one, and the oldest are deleted first.
    public func keptEventCount(tenantID: Text) throws -> Int64 {
        let newest = try eventHead(tenant: tenantID).sequence
        let cut = try eventCheckpoint(tenant: tenantID)?.head.sequence ?? 0
        return newest > cut ? Int64(clamping: newest - cut) : 0
    }
}

extension EventFilter {
    /// Times are compared one by one: a clock that was set back leaves events that are out of order.
    fileprivate func matches(_ event: EventRecord, kinds: Set<EventKind>) -> Bool {
        (uid.isEmpty || uid == event.uid) && (kinds.isEmpty || kinds.contains(event.kind))
            && (caller.isEmpty || caller == event.actor) && event.timeMicros >= fromMicros
            && (beforeMicros == 0 || event.timeMicros < beforeMicros)
    }
}

extension AuditEvent {
    /// A stored event as the API returns it; with `includesProof`, also the values that its hash is made of.
    public init(_ event: StoredEvent, includesProof: Bool) throws {
        let record = try EventRecord(stored: event.payload)
        self.init(
            sequence: Int64(clamping: event.sequence), timeMicros: record.timeMicros, kind: record.kind,
            uid: record.uid, caller: record.actor, requestID: record.requestID, detail: record.detail,
            settingsChange: record.settingsChange)
        guard includesProof else { return }
        proof = EventProof(
            globalSequence: Int64(clamping: event.globalSequence), previousHash: event.previousHash,
            payload: event.payload)
    }
}
