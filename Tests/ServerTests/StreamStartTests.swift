import Base
import Identity
import Messages
import Reactor
import Rules
import Store
import TestSupport
import Testing

@testable import Service

/// A stream begins its watch first and reads then, in a snapshot that is newer than the watch. So it misses no change,
/// even where the reads of its loop share a snapshot from before that change (decision 0070).
@Suite struct StreamStartTests {
    private static let watchState = "postern.v1.Sessions/WatchAuthState"
    private static let watchRevocations = "postern.v1.Tokens/WatchRevocations"
    private static let watchEvents = "postern.v1.Audit/WatchEvents"
    private static let watchDenials = "postern.v1.Tenants/WatchDenials"

    /// A test may block its thread for the moment that the loops take.
    private static func onEveryLoop(of server: TestServer, _ body: @escaping @Sendable (StoreReader) -> Void) {
        for loop in server.instance.loops.loops {
            let done = Semaphore()
            loop.run {
                if let reader = try? server.project.store.reader() { body(reader) }
                done.signal()
            }
            done.wait()
        }
    }

    /// Runs `body` while the reads of every loop share a snapshot of now, as if one batch lasted that long. A stream
    /// that reads before its watch begins, or in a snapshot from before its watch, misses the changes of `body`.
    private static func withHeldSnapshots(of server: TestServer, _ body: () async throws -> Void) async throws {
        onEveryLoop(of: server) { reader in
            reader.beginSharing()
            try? reader.read { _ in }
        }
        defer { onEveryLoop(of: server) { $0.endSharing() } }
        try await body()
    }

    @Test func `A stream that follows something is in this suite`() {
        let methods = PublishedMethod.all.filter { $0.isResponseStreaming && $0.fullName.contains("/Watch") }
        // The last one follows a value in memory and no rows.
        let known = [
            Self.watchState, Self.watchRevocations, Self.watchEvents, Self.watchDenials, "grpc.health.v1.Health/Watch",
        ]
        #expect(Set(methods.map(\.fullName)) == Set(known))
    }

    @Test func `The first look at a session sees a change from before the watch`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let uid = try #require(made.user).uid
            let tokens = try #require(made.tokens)
            let request = SessionsWatchAuthStateRequest(idToken: tokens.idToken)
            try await Self.withHeldSnapshots(of: server) {
                try client.update(uid, ["display_name"]) { $0.displayName = "Ada" }
                // The loops still answer from the snapshot that they share.
                let shared = try client.get(uid)
                #expect(shared.displayName.isEmpty)
                let stream = try RawStream<SessionsWatchAuthStateResponse>(server, Self.watchState, request)
                let first = try #require(try stream.next())
                #expect(first.change == .initial && first.user?.displayName == "Ada")
            }
        }
    }

    @Test(arguments: [true, false])
    func `A feed of revocations tells those from before its watch`(_ hasCursor: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp("ada@example.com").user).uid
            func watch(_ cursor: Text) throws -> TokensWatchRevocationsResponse {
                let stream = try RawStream<TokensWatchRevocationsResponse>(
                    server, Self.watchRevocations,
                    TokensWatchRevocationsRequest(cursor: cursor, heartbeatSeconds: 300))
                return try #require(try stream.next())
            }
            let cursor = try watch(.empty).cursor
            #expect(!cursor.isEmpty)
            try await Self.withHeldSnapshots(of: server) {
                _ = try RevocationTests.revoke(client, uid)
                let told = try watch(hasCursor ? cursor : .empty)
                #expect(told.snapshotReason == (hasCursor ? .unspecified : .noCursor))
                #expect(told.revocations.map(\.uid) == [uid])
            }
        }
    }

    @Test func `A watch of events tells those from before it`() async throws {
        try await withServer { server in
            let now = server.project.clock.now()
            let request = AuditWatchEventsRequest(afterSequence: -1, filter: EventFilter(kinds: [.userDeleted]))
            try await Self.withHeldSnapshots(of: server) {
                try await server.project.store.write {
                    try $0.appendEvent(.userDeleted, tenantID: .empty, uid: "ada", origin: .server, now: now)
                }
                let stream = try RawStream<AuditWatchEventsResponse>(server, Self.watchEvents, request)
                let first = try #require(try stream.next())
                #expect(first.event?.uid == "ada")
            }
        }
    }

    @Test func `A watch of denials tells those from before it`() async throws {
        try await withServer { server in
            let denial = Denial(sequence: 1, timeMicros: 1, toggle: .disabledUserSignup, operation: "elsewhere")
            try await Self.withHeldSnapshots(of: server) {
                try await server.project.store.write {
                    try $0.put(Tables.denials, SequenceKey("", denial.sequence), denial)
                }
                let stream = try RawStream<TenantsWatchDenialsResponse>(
                    server, Self.watchDenials, TenantsWatchDenialsRequest(afterSequence: -1))
                let first = try #require(try stream.next())
                #expect(first.denial?.sequence == 1)
            }
        }
    }

    /// The runtime puts the first step of a task behind the batch that began it, but nothing says that it has to.
    @Test func `A stream that begins within a batch does not read the batch's snapshot`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let uid = try #require(made.user).uid
            let tokens = try #require(made.tokens)
            let request = SessionsWatchAuthStateRequest(idToken: tokens.idToken)
            let carrier = MemoryCarrier(router: server.instance.router, loop: server.instance.loops.loops[0])
            let store = server.project.store
            let begun = try await carrier.call(
                "postern.v1.Users/Get", UsersGetRequest(uid: uid).encoded(),
                thenStream: (Self.watchState, request.encoded()), authorization: server.adminKey.bearer
            ) {
                _ = try? store.writeBlocking { transaction in
                    let key = UserKey(.empty, uid)
                    guard let stored = try transaction.reading.get(Tables.users, key) else { return }
                    var account = try Account(stored)
                    account.user.displayName = "Ada"
                    try transaction.put(Tables.users, key, account.record)
                }
            }
            #expect(begun.shared < begun.own)
            // The stream notices at its next look that its client has gone.
            try await until("the stream has begun") { await carrier.streamedCount == 1 }
            try client.update(uid, ["photo_url"]) { $0.photoURL = "https://a.example/a.png" }
            let messages = try await begun.ended.value().messages
            let first = try SessionsWatchAuthStateResponse(decoding: try #require(messages.first))
            #expect(first.change == .initial && first.user?.displayName == "Ada")
        }
    }
}
