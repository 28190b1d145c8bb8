public import Base
public import Reactor
public import Rules
import Store
import Synchronization

/// Finds the `UserSession` of a user. There is one at a time, made on demand and dropped when nobody uses it.
public final class UserDirectory: Sendable {
    private struct Shard: Sendable {
        var sessions: [UserKey: Weak] = [:]
        var sweepAt = 64
    }

    private struct Weak: Sendable {
        weak var session: UserSession?
    }

    private final class ShardLock: Sendable {
        let state = Mutex(Shard())
    }

    private let shards: [ShardLock]
    let resources: Resources
    private let issuer: TokenIssuer
    private let loops: EventLoopGroup

    public init(resources: Resources, issuer: TokenIssuer, loops: EventLoopGroup) {
        self.shards = (0..<16).map { _ in ShardLock() }
        self.resources = resources
        self.issuer = issuer
        self.loops = loops
    }

    /// The `UserSession` of a user. A new one is made on the loop that asks for it, mostly the loop that uses it: going
    /// to another loop and back wakes two threads.
    public func session(tenantID: Text, uid: Text) -> UserSession { session(UserKey(tenantID, uid)) }

    func session(_ key: UserKey) -> UserSession {
        // A request may name a user by megabytes, which the table would keep until its next sweep. The store refuses
        // every write about such a user, so that these writes need no order.
        guard key.fitsStore else { return makeSession(key, hash: 0) }
        let hash = UInt64(truncatingIfNeeded: Int64(key.hashValue))
        return shards[Int(hash % 16)].state.withLock { shard in
            if let session = shard.sessions[key]?.session { return session }
            if shard.sessions.count >= shard.sweepAt {
                shard.sessions = shard.sessions.filter { $0.value.session != nil }
                shard.sweepAt = max(64, shard.sessions.count * 2)
            }
            let session = makeSession(key, hash: hash)
            shard.sessions[key] = Weak(session: session)
            return session
        }
    }

    private func makeSession(_ key: UserKey, hash: UInt64) -> UserSession {
        UserSession(
            tenantID: key.tenant, uid: key.uid, resources: resources, issuer: issuer,
            loop: loops.current ?? loops.loop(for: hash >> 4))
    }

    /// The bytes of all keys in the table, also of sessions that nobody uses any more. For tests.
    var keptKeyByteCount: Int {
        shards.reduce(0) { sum, shard in
            sum + shard.state.withLock { $0.sessions.keys.reduce(0) { $0 + $1.byteCount } }
        }
    }
}

// MARK: - Changing several users

extension UserDirectory {
    /// Runs a write about several users after all earlier changes of each of them; their later changes wait for it.
    ///
    /// Turns are taken in the order of the keys, so that two such writes never wait for each other. A cancelled task
    /// takes no further turn: thousands of cancelled batches may wait for the same users, one behind the other. Throws
    /// `CancellationError`, and what `write` throws.
    func changing<Value: Sendable>(_ keys: [UserKey], _ write: () async throws -> Value) async throws -> Value {
        let sessions = Set(keys).sorted(by: Self.isBefore).map(session)
        var takenCount = 0
        let result: Result<Value, any Error>
        do {
            for session in sessions {
                try Task.checkCancellation()
                await session.takeTurn()
                takenCount += 1
            }
            try Task.checkCancellation()
            result = .success(try await write())
        } catch { result = .failure(error) }
        for session in sessions.prefix(takenCount) { await session.passTurn() }
        return try result.get()
    }

    /// Runs `body` for each of `items`, in writes that are short enough for the others who wait. Each item is about the
    /// user with the key that `key` gives. Items of earlier writes stay changed if a later one fails, whose error is
    /// told as `StoreError.afterEarlierWrites`.
    func changing<Item: Sendable, Value: Sendable>(
        each items: [Item], key: (Item) -> UserKey, for purpose: WritePurpose = .growth,
        _ body: @escaping @Sendable (borrowing WriteTransaction, Item) throws -> Value
    ) async throws -> [Value] {
        var values: [Value] = []
        while values.count < items.count {
            // The users' own changes wait for one write, not for all.
            let slice = items[values.count...].prefix(resources.limits.sliceItemsMax)
            do {
                values += try await changing(slice.map(key)) {
                    try await resources.store.write(firstOf: slice, for: purpose, body)
                }
            } catch let error as StoreError where !values.isEmpty {
                throw error.afterEarlierWrites
            }
        }
        return values
    }

    /// Does not compare the keys' bytes: a request may name a user by more bytes than a key holds.
    private static func isBefore(_ one: UserKey, _ other: UserKey) -> Bool {
        guard one.tenant == other.tenant else { return one.tenant.bytes.lexicographicallyPrecedes(other.tenant.bytes) }
        return one.uid.bytes.lexicographicallyPrecedes(other.uid.bytes)
    }
}

// MARK: - Reading

extension UserDirectory {
    public func isTaken(_ email: Email, tenantID: Text) throws -> Bool {
        try resources.store.read { try $0.uid(ofEmail: email, tenantID: tenantID) != nil }
    }

    public func account(email: Email, tenantID: Text) throws -> Account? {
        try resources.store.read { try $0.account(email: email, tenantID: tenantID) }
    }

    /// Does what `account(email:tenantID:)` does, and reads as much for an unknown address as for a known one.
    public func accountReadAlike(email: Email, tenantID: Text) throws -> Account? {
        try resources.store.read { try $0.accountReadAlike(email: email, tenantID: tenantID) }
    }
}
