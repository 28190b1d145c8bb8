public import Base
public import Messages
public import Store
import Synchronization

/// Records when API keys were last used, to the hour. A use is noted here and written later in the sweep, outside of
/// requests.
///
/// The key's own row is not changed, because every connection looks its caller up again when a key changes. Uses noted
/// since the last sweep are lost with the process. Any thread.
public final class KeyUses: Sendable {
    /// How much newer a use has to be than the stored one.
    private static let precision = Duration.hours(1)
    private static let sliceCount = 200

    private let resources: Resources
    /// API key id → the time of the use. Keys above the limit are not noted; the next sweep makes room.
    private let waiting = Mutex<[Text: Timestamp]>([:])

    init(_ resources: Resources) { self.resources = resources }

    /// Notes that an API key was shown just now, or is in use on a connection.
    public func note(_ apiKeyID: Text) {
        let now = resources.clock.now()
        let countMax = resources.limits.administration.apiKeyUsesWaitingMax
        waiting.withLock { waiting in
            if waiting.count < countMax || waiting[apiKeyID] != nil { waiting[apiKeyID] = now }
        }
    }

    /// How many uses wait to be written.
    public var waitingCount: Int { waiting.withLock { $0.count } }

    /// Writes the uses that are newer than the stored ones. A failure loses the noted uses, and nothing else.
    func sweep() async {
        do {
            try await write()
        } catch {
            resources.log.error("the last use of API keys was not recorded", ["error": .text("\(error)")])
        }
    }

    private func write() async throws {
        let noted = waiting.withLock { waiting in
            defer { waiting = [:] }
            return waiting
        }
        let due = try resources.store.read { transaction in
            try noted.filter { id, time in try transaction.isDue(time, of: id, precision: Self.precision) }
        }
        let ordered = due.sorted { $0.key < $1.key }
        for start in stride(from: 0, to: ordered.count, by: Self.sliceCount) {
            let slice = ordered[start..<min(start + Self.sliceCount, ordered.count)]
            try await resources.store.write { transaction in
                for (id, time) in slice where try transaction.reading.isDue(time, of: id, precision: Self.precision) {
                    let use = StoredApiKeyUse(lastUsedAtMicros: time.microseconds)
                    try transaction.put(Tables.apiKeyUses, TextKey(id), use)
                }
            }
        }
    }
}

extension ReadTransaction {
    /// Whether a use is worth a write: the key is there, and no other node wrote a later one. After the clock was set
    /// back, nothing is written until it is past the stored time.
    ///
    /// The use of a damaged key is not written, and a damaged use is replaced: neither keeps the other keys' uses.
    fileprivate func isDue(_ time: Timestamp, of id: Text, precision: Duration) throws -> Bool {
        do {
            guard try exists(Tables.apiKeys, TextKey(id)) else { return false }
        } catch StoreError.corrupt {
            return false
        }
        do {
            guard let stored = try get(Tables.apiKeyUses, TextKey(id))?.lastUsedAtMicros else { return true }
            return time >= Timestamp(microseconds: stored) + precision
        } catch StoreError.corrupt {
            return true
        }
    }

    /// The key with the time of its last use.
    public func withLastUse(_ key: ApiKey) throws -> ApiKey {
        var key = key
        key.lastUsedAtMicros = try get(Tables.apiKeyUses, TextKey(key.apiKeyID))?.lastUsedAtMicros ?? 0
        return key
    }
}
