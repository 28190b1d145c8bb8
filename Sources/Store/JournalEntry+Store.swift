import Base
import Journal
import Messages

extension WriteBatch {
    /// Whether the batch changes every node's store.
    var hasEntry: Bool { changes.map { !$0.isEmpty || !ownTopics.isEmpty } ?? false }

    /// The batch's changes to every node's store, as an entry of the journal; nil if it changes no other node's store.
    var entry: [UInt8]? {
        guard hasEntry, let changes else { return nil }
        let entry = JournalEntry(
            formatVersion: JournalEntry.newestFormat, schemaVersion: Schema.recordVersion,
            changes: changes.map(JournalChange.init),
            topics: ownTopics.map { JournalTopic(kind: $0.kind, name: $0.name) })
        var buffer = ByteBuffer()
        entry.encode(into: &buffer)
        return [UInt8](buffer.readable)
    }
}

extension JournalChange {
    fileprivate init(_ change: StoreChange) {
        let isDeleted = change.value == nil
        self.init(tableID: .init(change.tableID), key: change.key, value: change.value ?? [], isDeleted: isDeleted)
    }
}

extension JournalEntry {
    fileprivate static let newestFormat: UInt32 = 1
}

extension WriteTransaction {
    /// Makes an entry's changes, and announces the same topics as the node that wrote the entry.
    func apply(_ journaled: JournaledEntry) throws(StoreError) {
        let position = journaled.mark.position
        let entry: JournalEntry
        do {
            // The journal bounds the length of an entry, and the entry's seal proves that a node wrote it.
            entry = try JournalEntry(stored: journaled.bytes)
        } catch {
            throw .journal(.damaged(position: position))
        }
        let isKnown = entry.formatVersion <= JournalEntry.newestFormat && entry.schemaVersion <= Schema.recordVersion
        guard isKnown else { throw .journal(.newer(position: position)) }
        for change in entry.changes {
            guard let tableID = UInt8(exactly: change.tableID), reading.environment.tables[tableID] != nil else {
                throw .journal(.newer(position: position))
            }
            try apply(StoreChange(tableID: tableID, key: change.key, value: change.isDeleted ? nil : change.value))
        }
        for topic in entry.topics { announce(ChangeTopic(topic.kind, topic.name)) }
        if batch.changeCount > 0 { batch.newestEvent = try reading.newestEvent() }
    }
}

extension BatchID {
    init(random: RandomSource) {
        // Proof: there are 16 bytes.
        guard let id = BatchID(bytes: random.bytes(16)) else { preconditionFailure("no 16 bytes of random") }
        self = id
    }
}
