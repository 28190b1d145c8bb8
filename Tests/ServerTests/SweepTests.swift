import Base
import Glibc
import Messages
import Service
import Synchronization
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// The work that a server does once a minute.
@Suite struct SweepTests {
    /// The table as one of bytes, to put something into it that is none of its records.
    private static func bytes<Key, Record>(_ table: Table<Key, Record>) -> Table<TenantPrefix, [UInt8]> {
        Table<TenantPrefix, [UInt8]>(id: table.id, name: table.name, owner: table.owner, purge: table.purge)
    }

    private static func change(
        _ tenantID: Text, in server: TestServer, _ change: @escaping @Sendable (inout StoredTenant) -> Void
    ) async throws {
        try await server.project.store.write { transaction in
            var record = try #require(try transaction.get(Tables.tenants, TenantPrefix(tenantID)))
            change(&record)
            try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
        }
    }

    private static func createTenant(_ tenantID: Text, _ client: RawClient) throws {
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
        let _: UsersCreateResponse = try client.call(
            "postern.v1.Users/Create", UsersCreateRequest(tenantID: tenantID, uid: "ada"))
    }

    private static func eventCount(of tenantID: Text, in server: TestServer) throws -> Int {
        try server.project.store.read { transaction in
            var count = 0
            try transaction.scanEvents(tenant: tenantID) { _ in
                count += 1
                return true
            }
            return count
        }
    }

    /// Without this, one damaged record would end all housekeeping until somebody noticed that the disk fills up.
    @Test func `A part of the sweep that fails does not stop the parts that come after it`() async throws {
        try await withServer { server in
            try Self.createTenant("kept", try server.connect())
            try await Self.change("kept", in: server) { $0.tenant?.eventRetentionSeconds = 86_400 }
            _ = try await server.project.signingKeys.rotate(
                for: .idToken, algorithm: nil, publishAhead: .zero, origin: .server)
            // The log that tells of a retired key takes no event; and guesses that count for nothing any more.
            let guesses = GuessRowKey(time: server.project.clock.now(), serverID: 1, row: 1)
            try await server.project.store.write { transaction in
                try transaction.put(Schema.eventHeads, TenantPrefix(.empty), [0])
                try transaction.put(Tables.guesses, guesses, StoredGuesses())
            }
            server.clock.advance(by: .hours(48))
            #expect(try Self.eventCount(of: "kept", in: server) > 0)
            await #expect(throws: StoreError.corrupt(table: "event_heads")) {
                try await server.project.sweepForAll()
            }
            #expect(try Self.eventCount(of: "kept", in: server) == 0)
            #expect(try server.project.store.read { try !$0.exists(Tables.guesses, guesses) })
        }
    }

    /// Without this, nobody would be told of altered events, or of a store that is gone, while the clock is wrong.
    @Test func `While the clock is not proven, a sweep still looks after the events and the data file`() async throws {
        try await withServer { server in
            try Self.createTenant("kept", try server.connect())
            try await server.project.store.write { transaction in
                try transaction.delete(Schema.events, EventKey(tenant: "kept", sequence: 1))
            }
            server.clock.step(by: .zero - .days(1))
            await server.project.sweep()
            #expect(server.project.sweepsPutOff.value == 1 && server.project.eventUpkeep.faults.value == 1)
            #expect(server.instance.health.trouble == nil)
            #expect(unlink("\(server.directory)/data.mdb") == 0)
            await server.project.sweep()
            #expect(server.instance.health.trouble == .removed)
        }
    }

    @Test func `Damaged tenants do not keep others from being purged, and are logged once a day`() async throws {
        let lines = Lines()
        try await withServer(log: Log(level: .error, sink: { lines.append($0) })) { server in
            let client = try server.connect()
            for tenantID in ["broken", "doomed", "kept"] as [Text] { try Self.createTenant(tenantID, client) }
            try await server.project.store.write { transaction in
                // The length of a field that is not there.
                try transaction.put(Self.bytes(Tables.tenants), TenantPrefix("a-damaged"), [0x0A, 0x7F])
            }
            // As if the server had been killed in the middle of two deletions.
            for tenantID in ["broken", "doomed"] as [Text] {
                try await Self.change(tenantID, in: server) { $0.deleted = true }
            }
            // The count of a tenant's rows, which each of its writes reads. It is counted anew.
            try await server.project.store.write { transaction in
                try transaction.put(Self.bytes(Schema.tenantUsage), TenantPrefix("broken"), [0x0A, 0x7F])
            }
            try await server.project.sweepForAll()
            let (isPurged, userCounts) = try server.project.store.read { transaction in
                (
                    try ["broken", "doomed"].map { try transaction.get(Tables.tenants, TenantPrefix($0))?.purged },
                    try ["broken", "doomed", "kept"].map { try transaction.usage(ofTenant: $0).countedRowCount }
                )
            }
            #expect(isPurged == [true, true] && userCounts == [0, 0, 1])
            #expect(lines.count(of: "passes over a tenant") == 1 && lines.count(of: "a-damaged") == 1)
            #expect(lines.count(of: "\"broken\"") == 1)
            try await server.project.sweepForAll()
            #expect(lines.count(of: "passes over a tenant") == 1)
            server.clock.advance(by: .hours(25))
            try await server.project.sweepForAll()
            #expect(lines.count(of: "passes over a tenant") == 2)
        }
    }

    /// The deletion comes before the damage, or after it.
    @Test(arguments: [true, false])
    func `A tenant whose own record and sum are damaged goes completely`(_ isDeletedBefore: Bool) async throws {
        try await withServer { server in
            let client = try server.connect()
            for tenantID in ["broken", "kept"] as [Text] { try Self.createTenant(tenantID, client) }
            if isDeletedBefore {
                // As if the server had been killed in the middle of the deletion.
                try await Self.change("broken", in: server) { $0.deleted = true }
                let now = server.project.clock.now()
                try await server.project.store.write {
                    try $0.appendRevocation(.tenantDeleted, tenantID: "broken", now: now)
                }
            }
            try await server.project.store.write { transaction in
                try transaction.put(Self.bytes(Tables.tenants), TenantPrefix("broken"), [0x0A, 0x7F])
            }
            // Not in one write: a write of the tenant's rows reads their sum at its end.
            try await server.project.store.write { transaction in
                try transaction.put(Self.bytes(Schema.tenantUsage), TenantPrefix("broken"), [0x0A, 0x7F])
            }
            if isDeletedBefore {
                try await server.project.sweepForAll()
            } else {
                let _: TenantsDeleteResponse = try client.call(
                    "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "broken"))
            }
            let (record, users, sum, counted) = try server.project.store.read { transaction in
                (
                    try transaction.get(Tables.tenants, TenantPrefix("broken")),
                    try transaction.firstKeys(
                        tableID: Tables.users.id, prefix: TenantPrefix("broken").bytes, limit: 1
                    ).keys,
                    try transaction.usage(ofTenant: "broken"), try transaction.countedUsage(ofTenant: "broken")
                )
            }
            #expect(record?.deleted == true && record?.purged == true && users.isEmpty)
            #expect(sum == counted && sum.rowCount > 0)
            let listed: TenantsListResponse = try client.call("postern.v1.Tenants/List", TenantsListRequest())
            let ids = listed.tenants.map(\.tenantID)
            #expect(ids.contains("kept") && !ids.contains("broken"))
        }
    }

    @Test func `A damaged last use of one API key does not keep those of other keys`() async throws {
        try await withServer { server in
            let client = try server.connect()
            let made = try (0..<2).map { _ in
                try client.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true))),
                    returning: ProjectCreateApiKeyResponse.self)
            }
            let keyIDs = made.map { $0.apiKey?.apiKeyID ?? .empty }.sorted()
            let damaged = TextKey(try #require(keyIDs.first))
            let table = Tables.apiKeyUses
            let asBytes = Table<TextKey, [UInt8]>(
                id: table.id, name: table.name, owner: table.owner, purge: table.purge)
            // The length of a field that is not there.
            try await server.project.store.write { try $0.put(asBytes, damaged, [0x0A, 0x7F]) }
            for key in made {
                let user = try server.connect(authenticated: false)
                user.apiKey = key.secretKey
                let _: ProjectWhoAmIResponse = try user.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
            }
            await server.project.sweep()
            let uses = try server.project.store.read { transaction in
                try keyIDs.map { try transaction.get(table, TextKey($0))?.lastUsedAtMicros }
            }
            let now = server.project.clock.now().microseconds
            #expect(uses.count == 2 && uses.allSatisfy { $0 == now })
        }
    }

    /// Deleting a tenant is a promise, which must not hang on a damaged row.
    @Test func `A deleted tenant goes with its damaged rows, and the log says so once`() async throws {
        let lines = Lines()
        try await withServer(log: Log(level: .error, sink: { lines.append($0) })) { server in
            let client = try server.connect()
            try Self.createTenant("broken", client)
            let eventCount = try Self.eventCount(of: "broken", in: server)
            try await server.project.store.write { transaction in
                // An event that is too short to be one; the key of a session without a user; a user that is none.
                try transaction.put(Schema.events, EventKey(tenant: "broken", sequence: 1), [1])
                try transaction.put(Self.bytes(Tables.sessionByUser), TenantPrefix("broken"), [])
                try transaction.put(Self.bytes(Tables.users), TenantPrefix("broken"), [0x0A, 0x7F])
            }
            let _: TenantsDeleteResponse = try client.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "broken"))
            let prefix = TenantPrefix("broken")
            let (record, usage, sessions, checkpoint) = try server.project.store.read { transaction in
                (
                    try transaction.get(Tables.tenants, prefix), try transaction.usage(ofTenant: "broken"),
                    try transaction.firstKeys(tableID: Tables.sessionByUser.id, prefix: prefix.bytes, limit: 1).keys,
                    try transaction.eventCheckpoint(tenant: "broken")
                )
            }
            #expect(record?.purged == true && usage.countedRowCount == 0 && sessions.isEmpty)
            #expect(checkpoint?.head.sequence == UInt64(eventCount))
            #expect(try Self.eventCount(of: "broken", in: server) == 0)
            #expect(lines.count(of: "damaged records of a deleted tenant") == 1)
            await server.project.sweep()
            #expect(lines.count(of: "passes over") == 0)
        }
    }
}

private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    func append(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }

    /// How many lines hold the text.
    func count(of text: String) -> Int { lines.withLock { $0.count { $0.contains(text) } } }
}
