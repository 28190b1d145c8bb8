import Base
import Synchronization

/// What the writes of a batch announced, and the first snapshot that holds the batch.
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

/// Those that are told of each commit, whoever made it: on the writer's thread, and before its writes are answered.
///
/// There is no other way in which memory learns of a changed row. Copies of rows are told first. Those that wait for
/// something to happen are told afterwards, so that whoever they wake finds the copies refreshed.
final class Followers: Sendable {
    private struct Follower {
        let copy: CopyDescription
        let refresh: @Sendable (Announcement) throws -> Void
        /// Its last refresh failed: the next announcement is its business, whatever it is about.
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
        // Many in a row are of one kind.
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

/// A copy of rows in memory: what it is called, and the tables that it follows.
public struct CopyDescription: Sendable {
    public let name: StaticString
    public let tables: [StaticString]
    let kinds: Set<Text>
    /// Those of the tables that mark their rows.
    let markedTableIDs: Set<UInt8>
}
