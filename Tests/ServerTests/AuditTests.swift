import Base
import Crypto
import Identity
import Messages
import Rules
import Service
import Store
import TestSupport
import Testing

/// The event log by RPC: which caller reads which events, by which conditions, and what the server signs of it.
@Suite struct AuditTests {
    private static func events(
        _ client: RawClient, _ tenantID: Text, _ change: (inout AuditListEventsRequest) -> Void = { _ in }
    ) throws -> AuditListEventsResponse {
        var request = AuditListEventsRequest(tenantID: tenantID)
        change(&request)
        return try client.call("postern.v1.Audit/ListEvents", request)
    }

    private static func key(_ server: TestServer, _ role: Role, _ tenantID: Text?) throws -> (id: Text, RawClient) {
        let made: ProjectCreateApiKeyResponse = try server.connect().call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: role, scope: Scope(tenants: tenantID.map { .tenantID($0) } ?? .all(true))))
        let client = try server.connect()
        client.apiKey = made.secretKey
        return (made.apiKey?.apiKeyID ?? "", client)
    }

    /// A tenant `acme` with users u0, u1, …, a minute apart.
    private static func makeUsers(_ server: TestServer, _ count: Int) throws {
        let admin = try server.connect()
        let _: TenantsCreateResponse = try admin.call(
            "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
        for index in 0..<count {
            server.clock.advance(by: .minutes(1))
            let _: UsersCreateResponse = try admin.call(
                "postern.v1.Users/Create", UsersCreateRequest(tenantID: "acme", uid: Text("u\(index)")))
        }
    }

    @Test func `Events are listed by user, kind, caller and time, in both orders`() async throws {
        try await withServer { server in
            let begin = server.project.clock.now()
            try Self.makeUsers(server, 5)
            let (id, admin) = try Self.key(server, .tenantAdmin, "acme")
            let _: UsersDeleteResponse = try admin.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: "u3"))
            let all = try Self.events(admin, "")
            #expect(all.events.map(\.sequence) == [7, 6, 5, 4, 3, 2, 1] && all.isComplete && all.scanned == 7)
            #expect(all.events.last?.kind == .tenantCreated && all.events.allSatisfy { $0.proof == nil })
            func sequences(_ change: (inout AuditListEventsRequest) -> Void) throws -> [Int64] {
                try Self.events(admin, "acme", change).events.map(\.sequence)
            }
            #expect(try sequences { $0.oldestFirst = true } == [1, 2, 3, 4, 5, 6, 7])
            #expect(try sequences { $0.filter = EventFilter(uid: "u3") } == [7, 5])
            #expect(try sequences { $0.filter = EventFilter(kinds: [.userDeleted, .tenantCreated]) } == [7, 1])
            #expect(try sequences { $0.filter = EventFilter(caller: id) } == [7])
            #expect(try sequences { $0.filter = EventFilter(uid: "u3", caller: id) } == [7])
            let (from, before) = (begin + .minutes(2), begin + .minutes(4))
            #expect(
                try sequences {
                    $0.filter = EventFilter(fromMicros: from.microseconds, beforeMicros: before.microseconds)
                } == [4, 3])
            #expect(try sequences { $0.fromSequence = 3 } == [3, 2, 1])
            #expect(
                try sequences {
                    $0.fromSequence = 6
                    $0.oldestFirst = true
                } == [6, 7])
            expectRefusal("INVALID_SEQUENCE") { _ = try Self.events(admin, "") { $0.fromSequence = -1 } }
        }
    }

    @Test func `A page reads a bounded number of events, says so, and the next one goes on`() async throws {
        try await withServer(configure: { $0.limits.pageRowsReadMax = 4 }) { server in
            try Self.makeUsers(server, 9)
            let admin = try server.connect()
            var (token, found, scans) = (Text.empty, [Int64](), [Int32]())
            repeat {
                let page = try Self.events(admin, "acme") {
                    $0.filter = EventFilter(uid: "u1")
                    $0.pageToken = token
                }
                found += page.events.map(\.sequence)
                scans.append(page.scanned)
                #expect(page.isComplete == page.nextPageToken.isEmpty)
                token = page.nextPageToken
            } while !token.isEmpty
            #expect(found == [3] && scans == [4, 4, 2])
            // A page token continues only the listing that it is from.
            let first = try Self.events(admin, "acme") { $0.pageSize = 2 }
            #expect(first.events.map(\.sequence) == [10, 9])
            let second = try Self.events(admin, "acme") {
                $0.pageSize = 2
                $0.pageToken = first.nextPageToken
            }
            #expect(second.events.map(\.sequence) == [8, 7])
            expectRefusal("INVALID_PAGE_TOKEN") {
                _ = try Self.events(admin, "acme") {
                    $0.oldestFirst = true
                    $0.pageToken = first.nextPageToken
                }
            }
        }
    }

    @Test func `A tenant's admin reads that tenant's log, and only project-admins the project's`() async throws {
        try await withServer { server in
            try Self.makeUsers(server, 1)
            let (_, bound) = try Self.key(server, .tenantAdmin, "acme")
            let (_, pool) = try Self.key(server, .tenantAdmin, "")
            let (_, all) = try Self.key(server, .tenantAdmin, nil)
            let root = try server.connect()
            #expect(try Self.events(bound, "").events.count == 2)
            #expect(try Self.events(all, "acme").events.count == 2)
            #expect(try Self.events(root, "").events.contains { $0.kind == .apiKeyCreated })
            for client in [pool, all] {
                expectRefusal("PROJECT_EVENTS_NOT_ALLOWED") { _ = try Self.events(client, "") }
                expectRefusal("PROJECT_EVENTS_NOT_ALLOWED") {
                    let _: AuditSignCheckpointResponse = try client.call(
                        "postern.v1.Audit/SignCheckpoint", AuditSignCheckpointRequest())
                }
                let key = try #require(client.apiKey)
                expectRefusal("PROJECT_EVENTS_NOT_ALLOWED") {
                    _ = try RawStream<AuditWatchEventsResponse>(
                        server, "postern.v1.Audit/WatchEvents", AuditWatchEventsRequest(), apiKey: key
                    ).next()
                }
            }
            let (_, app) = try Self.key(server, .app, "acme")
            expectRefusal("INSUFFICIENT_PERMISSION") { _ = try Self.events(app, "acme") }
            expectRefusal("INSUFFICIENT_PERMISSION") { _ = try Self.events(pool, "acme") }
        }
    }

    @Test func `A watch tells what comes, behind a sequence, and only what is asked for`() async throws {
        try await withServer { server in
            try Self.makeUsers(server, 3)
            func stream(_ request: AuditWatchEventsRequest) throws -> RawStream<AuditWatchEventsResponse> {
                try RawStream(server, "postern.v1.Audit/WatchEvents", request)
            }
            let whole = try stream(AuditWatchEventsRequest(tenantID: "acme", afterSequence: -1, includeProof: true))
            let seen = try (0..<4).map { _ in try #require(try whole.next()?.event) }
            #expect(seen.map(\.sequence) == [1, 2, 3, 4] && seen.allSatisfy { $0.proof?.previousHash.count == 32 })
            let later = try stream(AuditWatchEventsRequest(tenantID: "acme", afterSequence: 3))
            #expect(try later.next()?.event?.sequence == 4)
            let deleted = try stream(
                AuditWatchEventsRequest(
                    tenantID: "acme", afterSequence: -1, filter: EventFilter(kinds: [.userDeleted])))
            let admin = try server.connect()
            for uid in ["u2", "u0"] as [Text] {
                let _: UsersDeleteResponse = try admin.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(tenantID: "acme", uid: uid))
                #expect(try deleted.next()?.event?.uid == uid)
                #expect(try later.next()?.event?.uid == uid)
            }
            // Six events are there. A watch that begins behind a later one would leave out all until there.
            for sequence in [Int64.max, .min, -2, 7, .max - 1] {
                expectRefusal("INVALID_SEQUENCE") {
                    _ = try stream(AuditWatchEventsRequest(tenantID: "acme", afterSequence: sequence)).next()
                }
            }
            let last = try stream(AuditWatchEventsRequest(tenantID: "acme", afterSequence: 6))
            let _: UsersDeleteResponse = try admin.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(tenantID: "acme", uid: "u1"))
            #expect(try last.next()?.event?.sequence == 7)
        }
    }

    @Test func `A call beyond its credential is an event where that belongs, and a flood a few`() async throws {
        try await withServer { server in
            try Self.makeUsers(server, 1)
            let root = try server.connect()
            let _: TenantsCreateResponse = try root.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "beta"))
            let denied = EventFilter(kinds: [.callDenied])
            func stream(_ tenantID: Text) throws -> RawStream<AuditWatchEventsResponse> {
                try RawStream(
                    server, "postern.v1.Audit/WatchEvents",
                    AuditWatchEventsRequest(tenantID: tenantID, afterSequence: -1, filter: denied))
            }
            let (id, bound) = try Self.key(server, .tenantAdmin, "acme")
            let log = try stream("acme")
            expectRefusal("INSUFFICIENT_PERMISSION") {
                let _: UsersGetResponse = try bound.call(
                    "postern.v1.Users/Get", UsersGetRequest(tenantID: "beta", uid: "u0"))
            }
            let first = try #require(try log.next()?.event)
            #expect(first.caller == id)
            #expect(
                first.detail == "postern.v1.Users/Get INSUFFICIENT_PERMISSION tenant \"beta\"")
            for _ in 0..<50 {
                expectRefusal("INSUFFICIENT_PERMISSION") {
                    let _: ProjectStatsResponse = try bound.call(
                        "postern.v1.Project/Stats", ProjectStatsRequest())
                }
            }
            for _ in 0..<9 {
                #expect(try log.next()?.event?.detail == "postern.v1.Project/Stats INSUFFICIENT_PERMISSION")
            }
            server.clock.advance(by: .minutes(10))
            await server.project.sweep()
            #expect(try log.next()?.event?.detail == "41 more calls")
            #expect(try Self.events(root, "beta") { $0.filter = denied }.events.isEmpty)
            // A credential of all tenants belongs to the project.
            let (other, verifier) = try Self.key(server, .verifier, nil)
            expectRefusal("INSUFFICIENT_PERMISSION") { _ = try Self.events(verifier, "acme") }
            #expect(try stream("").next()?.event?.caller == other)
        }
    }

    @Test func `What a refused caller wrote cannot look like words of the event`() async throws {
        try await withServer { server in
            try Self.makeUsers(server, 1)
            let (_, bound) = try Self.key(server, .tenantAdmin, "acme")
            let log: RawStream<AuditWatchEventsResponse> = try RawStream(
                server, "postern.v1.Audit/WatchEvents",
                AuditWatchEventsRequest(
                    tenantID: "acme", afterSequence: -1, filter: EventFilter(kinds: [.callDenied])))
            expectRefusal("INSUFFICIENT_PERMISSION") {
                let _: UsersGetResponse = try bound.call(
                    "postern.v1.Users/Get", UsersGetRequest(tenantID: "beta\"; 41 more calls", uid: "u0"))
            }
            #expect(
                try log.next()?.event?.detail
                    == "postern.v1.Users/Get INSUFFICIENT_PERMISSION tenant of another name than a tenant can have")
        }
    }

    @Test func `A checkpoint is signed with the published key, which follows from the master key`() async throws {
        try await withServer { server in
            try Self.makeUsers(server, 2)
            let client = try server.connect()
            let made: AuditGetKeyResponse = try client.call("postern.v1.Audit/GetKey", AuditGetKeyRequest())
            let key = try VerificationKey(spki: made.publicKey)
            #expect(key.algorithm == .edDSA && key.keyID == made.keyID)
            #expect(key == server.masterKey.signingKey("audit").publicKey)
            let end: AuditSignCheckpointResponse = try client.call(
                "postern.v1.Audit/SignCheckpoint", AuditSignCheckpointRequest(tenantID: "acme"))
            let signed = try #require(end.signed)
            #expect(key.verify(signature: signed.signature, over: AuditSigner.context + signed.checkpoint))
            #expect(!key.verify(signature: signed.signature, over: signed.checkpoint))
            let checkpoint = try AuditCheckpoint(decoding: signed.checkpoint)
            #expect(checkpoint == end.checkpoint && checkpoint.sequence == 3 && checkpoint.cutSequence == 0)
            #expect(checkpoint.tenantID == "acme" && checkpoint.projectID == "test")
            #expect(try server.project.store.read { try $0.eventHead(tenant: "acme").hash } == checkpoint.hash)
        }
    }
}
