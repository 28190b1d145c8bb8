import Base
import Crypto
import Messages
import Reactor
import Rules
import Signing
import Store
import Synchronization
import TestSupport
import Testing
import Tokens

@testable import Identity

@Suite struct UserDirectoryTests {
    private func withDirectory(_ body: (UserDirectory, Fixture) async throws -> Void) async throws {
        try await withFixture { fixture in
            let pool = WorkerPool(name: "sign", workers: 1, queueMax: 1, queueMaxPerTenant: 1)
            defer { close(pool) }
            let masterKey = MasterKey.generate(random: .system)
            let signer = TokenSigner(
                use: .idToken, store: fixture.store, sealing: masterKey.sealing, pool: pool,
                loop: fixture.loops.loops[0], clock: fixture.clock.clock, random: .system)
            let codec = RefreshTokenCodec(key: masterKey.hmac("refresh"), keyID: [1, 2, 3, 4])
            let issuer = TokenIssuer(signer: signer, refreshTokens: codec, issuer: "i", audience: "a")
            try await body(UserDirectory(resources: fixture.resources, issuer: issuer, loops: fixture.loops), fixture)
        }
    }

    @Test func aUserHasOneOwnerAtATime() async throws {
        try await withDirectory { directory, _ in
            let owner = directory.session(tenantID: "acme", uid: "u1")
            #expect(directory.session(tenantID: "acme", uid: "u1") === owner)
            #expect(owner.tenantID == "acme" && owner.uid == "u1")
            #expect(directory.session(tenantID: "acme", uid: "u2") !== owner)
            #expect(directory.session(tenantID: "acmeu", uid: "1") !== owner)
            // Uids are compared by bytes, not by canonical equivalence.
            let composed = directory.session(tenantID: "acme", uid: "\u{E9}")
            #expect(directory.session(tenantID: "acme", uid: "e\u{301}") !== composed)
        }
    }

    @Test func aUserIsOwnedWhereItIsAskedFor() async throws {
        try await withDirectory { directory, fixture in
            for loop in fixture.loops.loops {
                let made = Promise<UserSession>()
                loop.run { made.succeed(directory.session(tenantID: "acme", uid: Text(loop.name))) }
                let owner = try await made.value()
                #expect(owner.loop === loop)
                #expect(directory.session(tenantID: "acme", uid: Text(loop.name)) === owner)
            }
        }
    }

    @Test func anOwnerNobodyUsesIsDropped() async throws {
        try await withDirectory { directory, _ in
            weak var dropped: UserSession?
            do {
                let owner = directory.session(tenantID: "acme", uid: "u1")
                dropped = owner
                #expect(dropped != nil)
            }
            #expect(dropped == nil)
            #expect(directory.session(tenantID: "acme", uid: "u1").uid == "u1")
        }
    }

    @Test func manyThreadsGetTheSameOwner() async throws {
        try await withDirectory { directory, _ in
            let found = Mutex<[Text: [UserSession]]>([:])
            let threads = (0..<4).map { _ in
                OSThread(name: "find") {
                    for number in 0..<200 {
                        let uid = Text("u\(number)")
                        let owner = directory.session(tenantID: "acme", uid: uid)
                        found.withLock { $0[uid, default: []].append(owner) }
                    }
                }
            }
            for thread in threads { join(thread) }
            let owners = found.withLock { $0 }
            #expect(owners.count == 200)
            #expect(owners.values.allSatisfy { $0.count == 4 && Set($0.map(ObjectIdentifier.init)).count == 1 })
        }
    }

    @Test func ownersInUseOutlastAnyNumberOfOthers() async throws {
        try await withDirectory { directory, _ in
            let held = (0..<100).map { directory.session(tenantID: "acme", uid: Text("held\($0)")) }
            for number in 0..<5_000 { _ = directory.session(tenantID: "acme", uid: Text("u\(number)")) }
            for (number, owner) in held.enumerated() {
                #expect(directory.session(tenantID: "acme", uid: Text("held\(number)")) === owner)
            }
        }
    }

    @Test func `A name that no user can have is not kept`() async throws {
        try await withDirectory { directory, _ in
            func session(_ byteCount: Int, _ first: UInt8 = 1) -> UserSession {
                let bytes = [first] + [UInt8](repeating: UInt8(ascii: "x"), count: byteCount - 1)
                return directory.session(tenantID: "acme", uid: Text(unchecked: bytes))
            }
            for number in 0..<1_000 { _ = session(1 << 20, UInt8(1 + number % 100)) }
            #expect(directory.keptKeyByteCount == 0)
            // The tenant and a zero byte come before the uid.
            let longest = session(506)
            #expect(session(506) === longest && directory.keptKeyByteCount == 511)
            let tooLong = session(507)
            #expect(session(507) !== tooLong && directory.keptKeyByteCount == 511)
            await #expect(throws: StoreError.keySize) {
                try await tooLong.delete(origin: .server, validateOnly: true)
            }
        }
    }

    // MARK: The order of changes

    private static func untilOneWaits(for session: UserSession, _ count: Int = 1) async throws {
        try await until("\(count) changes wait") { await session.waitingCount >= count }
    }

    @Test func `Changes of a user are made one after the other, in the order they came`() async throws {
        try await withDirectory { directory, _ in
            let session = directory.session(tenantID: "acme", uid: "u1")
            let order = Notes()
            await session.takeTurn()
            var changes: [Task<Void, any Error>] = []
            for number in 1...5 {
                changes.append(Task { try await session.write { _ in order.add("\(number)") } })
                try await Self.untilOneWaits(for: session, number)
            }
            #expect(order.entries.isEmpty)
            await session.passTurn()
            for change in changes { try await change.value }
            #expect(order.entries == ["1", "2", "3", "4", "5"])
            #expect(await session.waitingCount == 0)
        }
    }

    @Test func `A write about many users has the turn of each`() async throws {
        try await withDirectory { directory, fixture in
            let (ada, bob) = (UserKey("acme", "ada"), UserKey("acme", "bob"))
            let session = directory.session(bob)
            let order = Notes()
            var change: Task<Void, any Error>?
            try await directory.changing([bob, ada, bob]) {
                change = Task { try await session.write { _ in order.add("one") } }
                try await Self.untilOneWaits(for: session)
                try await fixture.store.write { _ in order.add("many") }
            }
            try await change?.value
            #expect(order.entries == ["many", "one"])
            await #expect(throws: Failure.self) {
                try await directory.changing([ada, bob]) { throw Failure.userNotFound }
            }
            try await session.write { _ in order.add("after") }
            #expect(order.entries.last == "after")
        }
    }

    /// Thousands of batches of a client that is gone may wait one behind the other.
    @Test func `A cancelled write about many users takes no further turn, and gives back those it has`() async throws {
        try await withDirectory { directory, _ in
            let (ada, bob) = (UserKey("acme", "ada"), UserKey("acme", "bob"))
            let (first, second) = (directory.session(ada), directory.session(bob))
            await first.takeTurn()
            await second.takeTurn()
            let order = Notes()
            let batch = Task { try await directory.changing([ada, bob]) { order.add("written") } }
            try await Self.untilOneWaits(for: first)
            batch.cancel()
            await first.passTurn()
            // Bob's turn is not free, and need not be.
            await #expect(throws: CancellationError.self) { try await batch.value }
            try await first.write { _ in order.add("after") }
            #expect(order.entries == ["after"])
            #expect(await second.waitingCount == 0)
            await second.passTurn()
        }
    }

    /// No two writes wait for each other's turns.
    @Test(.timeLimit(.minutes(2)))
    func `Writes about the same users in another order do not lock each other out`() async throws {
        try await withDirectory { directory, fixture in
            let keys = (0..<20).map { UserKey("acme", Text("u\($0)")) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for round in 0..<50 {
                    group.addTask {
                        let mine = round.isMultiple(of: 2) ? keys : keys.reversed()
                        try await directory.changing(mine) { try await fixture.store.write { _ in } }
                    }
                }
                try await group.waitForAll()
            }
        }
    }
}

/// A test may block its thread for the moment in which these end.
private func close(_ pool: WorkerPool) { pool.close() }
private func join(_ thread: OSThread) { thread.join() }

private final class Notes: Sendable {
    private let state = Mutex<[String]>([])

    var entries: [String] { state.withLock { $0 } }

    func add(_ entry: String) { state.withLock { $0.append(entry) } }
}
