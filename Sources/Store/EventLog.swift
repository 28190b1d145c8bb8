public import Base

extension WriteTransaction {
    /// Appends to the tenant's chain, in the same transaction as the change that the event describes. The event cannot
    /// be read before the commit: a batch gives its events their sequences at its end.
    public func appendEvent(tenant: Text, _ payload: [UInt8]) throws(StoreError) {
        guard tenant.byteCount <= EventLog.tenantByteCountMax else { throw .keySize }
        batch.append(PendingEvent(tenant: tenant, payload: payload))
    }

    /// The sequence that the tenant's next event gets. It is certain: a write that fails rolls its whole batch back,
    /// and the writes after it run again.
    public func nextEventSequence(tenant: Text) throws(StoreError) -> UInt64 {
        let waiting = batch.events.count { $0.tenant == tenant }
        // Proof: sequences count events one by one.
        return try reading.eventHead(tenant: tenant).sequence + UInt64(waiting) + 1
    }

    /// Numbers the batch's events and chains them in the order in which they were appended. Once, before the commit.
    func writeEvents() throws(StoreError) {
        guard !batch.events.isEmpty else { return }
        var globalSequence = try reading.newestEvent()
        var heads: [Text: EventHead] = [:]
        for event in batch.events {
            let head: EventHead
            if let known = heads[event.tenant] {
                head = known
            } else {
                head = try reading.eventHead(tenant: event.tenant)
            }
            globalSequence += 1
            let record = EventLog.record(
                globalSequence: globalSequence, previousHash: head.hash, payload: event.payload)
            let key = EventKey(tenant: event.tenant, sequence: head.sequence + 1)
            try put(Schema.events, key, record)
            heads[event.tenant] = EventHead(
                sequence: key.sequence, hash: try reading.hash(of: record, under: key))
        }
        for (tenant, head) in heads { try put(Schema.eventHeads, TenantPrefix(tenant), head.encoded) }
        var sequence: [UInt8] = []
        sequence.append(bigEndian: globalSequence)
        try put(Schema.meta, EventLog.sequenceKey, sequence)
        batch.newestEvent = globalSequence
    }

    /// Deletes up to `limit` of the tenant's oldest events while `isOld` says so, and leaves a checkpoint in their
    /// place. Deletes fewer if their time is over before (`SliceTime`).
    @discardableResult
    public func deleteEvents(
        tenant: Text, limit: Int, now: Timestamp, while isOld: (StoredEvent) throws -> Bool
    ) throws -> WriteSlice {
        let time = beginSlice()
        var (sequences, last): ([UInt64], StoredEvent?) = ([], nil)
        var isTimeOver = false
        try reading.scanEvents(tenant: tenant, limit: limit) { event in
            guard try isOld(event) else { return false }
            sequences.append(event.sequence)
            last = event
            isTimeOver = time.isOver
            return !isTimeOver
        }
        guard let last else { return WriteSlice(count: 0, isMore: false) }
        let head = EventHead(sequence: last.sequence, hash: try reading.hash(of: last, tenant: tenant))
        for sequence in sequences { try delete(Schema.events, EventKey(tenant: tenant, sequence: sequence)) }
        try put(Schema.eventCheckpoints, TenantPrefix(tenant), EventCheckpoint(head: head, cutAt: now).encoded)
        return WriteSlice(count: sequences.count, isMore: isTimeOver || sequences.count == limit)
    }

    /// Deletes up to `limit` of a deleted tenant's events, and returns whether there may be more. The checkpoint stays,
    /// so that nobody can pass other events off as the tenant's.
    ///
    /// Damaged events are deleted, too; they are told to `onDamage` by the table's name.
    public func deleteEvents(
        ofDeletedTenant tenant: Text, limit: Int, now: Timestamp, onDamage: (String) -> Void = { _ in }
    ) throws -> Bool {
        let isMore: Bool
        do {
            isMore = try deleteEvents(tenant: tenant, limit: limit, now: now, while: { _ in true }).isMore
        } catch StoreError.corrupt {
            onDamage(Schema.events.name.description)
            isMore = try deleteAll(Schema.events, evenDamagedOf: tenant, limit: limit) == limit
        }
        if isMore { return true }
        try endLog(ofDeletedTenant: tenant, now: now)
        return false
    }

    /// Deletes the head of a log without events. If the last events were damaged, the checkpoint is made from the head.
    private func endLog(ofDeletedTenant tenant: Text, now: Timestamp) throws {
        let checkpoint = try? reading.eventCheckpoint(tenant: tenant)
        if let head = try? reading.eventHead(tenant: tenant), head != checkpoint?.head ?? .empty {
            try put(Schema.eventCheckpoints, TenantPrefix(tenant), EventCheckpoint(head: head, cutAt: now).encoded)
        }
        try delete(Schema.eventHeads, TenantPrefix(tenant))
    }
}

extension ReadTransaction {
    /// The number of the newest event of all tenants.
    func newestEvent() throws(StoreError) -> UInt64 {
        guard let bytes = try get(Schema.meta, EventLog.sequenceKey) else { return 0 }
        guard bytes.count == 8 else { throw corrupt(Schema.meta.id) }
        return bytes.bigEndianNumber
    }

    /// Nil while the tenant's log is whole.
    public func eventCheckpoint(tenant: Text) throws(StoreError) -> EventCheckpoint? {
        guard let bytes = try get(Schema.eventCheckpoints, TenantPrefix(tenant)) else { return nil }
        guard let checkpoint = EventCheckpoint(bytes) else { throw corrupt(Schema.eventCheckpoints.id) }
        return checkpoint
    }

    /// The next tenant with events after `last`, also one whose head is damaged; nil if there is none.
    public func tenantWithEvents(after last: Text?) throws -> Text? {
        var tenant: Text?
        try scanKeys(of: Schema.eventHeads, from: last.map { .after(TenantPrefix($0)) } ?? .first) { key in
            tenant = key.tenant
            return false
        }
        return tenant
    }

    /// The tenant's newest event, or the checkpoint if the tenant was deleted.
    public func eventHead(tenant: Text) throws(StoreError) -> EventHead {
        guard let bytes = try get(Schema.eventHeads, TenantPrefix(tenant)) else {
            // With a lost head, the next event would take the place of an old one.
            guard try !hasEvents(tenant: tenant) else { throw corrupt(Schema.eventHeads.id) }
            return try eventCheckpoint(tenant: tenant)?.head ?? .empty
        }
        guard let head = EventHead(bytes) else { throw corrupt(Schema.eventHeads.id) }
        return head
    }

    private func hasEvents(tenant: Text) throws(StoreError) -> Bool {
        try withBytes(of: TenantPrefix(tenant)) { prefix throws(StoreError) in
            let cursor = try Cursor(self, tableID: Schema.events.id)
            return try cursor.first(of: prefix, .first)?.key.starts(with: prefix) ?? false
        }
    }

    /// The tenant's events from `sequence` on, in order, until `body` returns false or `limit` is reached. A `reversed`
    /// scan goes backwards from the newest event, and `sequence` is the highest.
    public func scanEvents(
        tenant: Text, from sequence: UInt64? = nil, reversed: Bool = false, limit: Int = .max,
        _ body: (StoredEvent) throws -> Bool
    ) throws {
        let start = sequence.map { ScanStart.at(EventKey(tenant: tenant, sequence: $0)) } ?? .first
        let prefix = TenantPrefix(tenant)
        try scan(Schema.events, prefix: prefix, from: start, reversed: reversed, limit: limit) { row in
            guard let event = StoredEvent(try row.key, record: row.value) else { throw corrupt(Schema.events.id) }
            return try body(event)
        }
    }

    /// Follows the tenant's chain from its checkpoint, or its first event, to its head.
    public func verifyEvents(tenant: Text) throws -> EventChainStatus {
        var place = try eventCheckpoint(tenant: tenant)?.head ?? .empty
        return try followEvents(tenant: tenant, from: &place, limit: .max)
    }

    /// Follows the tenant's chain from `place`, which it moves, by up to `limit` events. If it followed fewer than
    /// `limit`, the chain ends at the tenant's head, as it should. Throws `.corrupt` for a damaged record; `place` then
    /// is before it.
    public func followEvents(tenant: Text, from place: inout EventHead, limit: Int) throws -> EventChainStatus {
        let start = place
        var reached = start
        var broken: UInt64?
        var count = 0
        defer { place = reached }
        try scanEvents(tenant: tenant, from: start.sequence + 1, limit: limit) { event in
            guard event.sequence == reached.sequence + 1, event.previousHash == reached.hash else {
                // A wrong reference means that the event before it was altered, unless none was read before it.
                let isAltered = event.sequence == reached.sequence + 1 && reached != start
                broken = reached.sequence + (isAltered ? 0 : 1)
                return false
            }
            reached = EventHead(sequence: event.sequence, hash: try hash(of: event, tenant: tenant))
            count += 1
            return true
        }
        if let broken { return .broken(sequence: broken) }
        guard count < limit else { return .intact(count: count) }
        let head = try eventHead(tenant: tenant)
        if head.sequence != reached.sequence { return .broken(sequence: reached.sequence + 1) }
        return head.hash == reached.hash ? .intact(count: count) : .broken(sequence: head.sequence)
    }

    /// The hash by which the tenant's next event, or a checkpoint, refers to this event.
    public func hash(of event: StoredEvent, tenant: Text) throws(StoreError) -> [UInt8] {
        let record = EventLog.record(
            globalSequence: event.globalSequence, previousHash: event.previousHash, payload: event.payload)
        return try hash(of: record, under: EventKey(tenant: tenant, sequence: event.sequence))
    }

    func hash(of record: [UInt8], under key: EventKey) throws(StoreError) -> [UInt8] {
        try withBytes(of: key) { key throws(StoreError) in
            let hash = record.withUnsafeBytes { environment.eventHash([key, $0]) }
            precondition(hash.count == EventLog.hashByteCount, "an event hash of \(hash.count) bytes")
            return hash
        }
    }
}
