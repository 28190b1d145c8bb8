import Base
import Synchronization

/// The topics and rows that the writes of a batch announced, and the first snapshot that holds the batch.
public struct Announcement: Sendable {
    public let topics: [ChangeTopic]
    /// Rows of tables with news `.marked`.
    let rows: [MarkedRow]
    public let snapshot: Snapshot

    /// The rows of a table with news `.ofRow` that were changed.
    public func keys<Key: StoreKey, Record>(of table: Table<Key, Record>) -> [Key] {
        let kind = table.declaration.kind
        return topics.compactMap { topic in
            topic.kind == kind ? topic.name.withUnsafeBytes { Key(stored: $0) } : nil
        }
    }
}

/// The copies and listeners that are told of each commit, on the writer's thread and before its writes are answered.
///
/// This is the only way in which memory learns of a changed row. Copies of rows are told first. Listeners are told
/// afterwards, so that the callers that they wake find the copies refreshed.
final class Followers: Sendable {
    private struct Follower {
        let copy: CopyDescription
        let refresh: @Sendable (Announcement) throws -> Void
        /// Whether the last refresh failed. If so, the next announcement refreshes the copy, whatever it is about.
        var isBehind = false
    }

    private struct State {
        var copies: [Follower] = []
        var listeners: [@Sendable ([ChangeTopic]) -> Void] = []
    }

    private let state = Mutex(State())

    var copies: [CopyDescription] { state.withLock { $0.copies.map(\.copy) } }

    func add(_ copy: CopyDescription, _ refresh: @escaping @Sendable (Announcement) throws -> Void) {
        state.withLock { $0.copies.append(Follower(copy: copy, refresh: refresh)) }
    }

    func add(_ listener: @escaping @Sendable ([ChangeTopic]) -> Void) {
        state.withLock { $0.listeners.append(listener) }
    }

    /// The writer's thread only. Returns the copies whose refresh failed.
    func tell(_ announcement: Announcement) -> [(copy: CopyDescription, error: any Error)] {
        let (copies, listeners) = state.withLock { ($0.copies, $0.listeners) }
        var kinds: Set<Text> = []
        // Often many topics in a row have the same kind.
        for (place, topic) in announcement.topics.enumerated()
        where place == 0 || topic.kind != announcement.topics[place - 1].kind {
            kinds.insert(topic.kind)
        }
        let tableIDs = Set(announcement.rows.map(\.tableID))
        var failures: [(copy: CopyDescription, error: any Error)] = []
        for (place, follower) in copies.enumerated() {
            let isOfInterest =
                !follower.copy.kinds.isDisjoint(with: kinds)
                || !follower.copy.markedTableIDs.isDisjoint(with: tableIDs)
            guard follower.isBehind || isOfInterest else { continue }
            do {
                try follower.refresh(announcement)
                if follower.isBehind { state.withLock { $0.copies[place].isBehind = false } }
            } catch {
                failures.append((follower.copy, error))
                state.withLock { $0.copies[place].isBehind = true }
            }
        }
        for listener in listeners { listener(announcement.topics) }
        return failures
    }
}

/// The name of a copy of rows in memory, and the tables that it follows.
public struct CopyDescription: Sendable {
    public let name: StaticString
    public let tables: [StaticString]
    let kinds: Set<Text>
    /// The ids of the tables that mark their rows.
    let markedTableIDs: Set<UInt8>
}
