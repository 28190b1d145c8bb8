public import Base

/// One page of a tenant's events, and where the next page begins.
public struct EventPage: Sendable {
    public fileprivate(set) var events: [StoredEvent] = []
    /// The sequence of the last event that was read, if the log goes on after it; nil on the last page.
    public fileprivate(set) var last: UInt64?
    /// How many events were read for the page, whether they are in it or not.
    public fileprivate(set) var rowReadCount = 0
}

/// Where a page of events begins.
public enum EventStart: Sendable {
    case first
    /// With this event, or the next one in the page's order.
    case at(UInt64)
    case after(UInt64)
}

extension ReadTransaction {
    /// Reads a page of the tenant's events that `isWanted` accepts, oldest first or, if `reversed`, newest first.
    public func events(
        tenant: Text, from start: EventStart, reversed: Bool = false, bounds: PageBounds,
        isWanted: (StoredEvent) throws -> Bool
    ) throws -> EventPage {
        let place: ScanStart
        switch start {
        case .first: place = .first
        case .at(let sequence): place = .at(EventKey(tenant: tenant, sequence: sequence))
        case .after(let sequence): place = .after(EventKey(tenant: tenant, sequence: sequence))
        }
        var result = EventPage()
        let rows = try page(
            of: Schema.events, prefix: TenantPrefix(tenant), from: place, reversed: reversed, bounds: bounds
        ) { row in
            guard let event = StoredEvent(try row.key, record: row.value) else { throw corrupt(Schema.events.id) }
            guard try isWanted(event) else { return .skipped }
            result.events.append(event)
            return .item(row.value)
        }
        // The first item that did not fit was read as well. It begins the next page.
        result.events.removeLast(result.events.count - rows.items.count)
        result.last = rows.last?.sequence
        result.rowReadCount = rows.rowReadCount
        return result
    }

    /// One event, and its record in the map, which is valid until the transaction ends.
    public func event(
        tenant: Text, sequence: UInt64
    ) throws -> (event: StoredEvent, record: UnsafeRawBufferPointer)? {
        let key = EventKey(tenant: tenant, sequence: sequence)
        guard let record = try payload(Schema.events, key) else { return nil }
        guard let event = StoredEvent(key, record: record) else { throw corrupt(Schema.events.id) }
        return (event, record)
    }

    /// The topic of the tenant's log, which is announced with each batch that adds to the log.
    public static func eventsTopic(tenant: Text) -> ChangeTopic { Schema.eventHeads.topic(ofTenant: tenant) }
}
