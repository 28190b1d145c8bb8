import Base
import Crypto
import Glibc
import Messages
import Signing
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// Damaged rows where a server meets them: what needs the row fails, and what does not goes on.
@Suite struct DamageMeetingsTests {
    /// Damages a row that is there.
    private static func damage<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, _ key: Key, _ server: TestServer
    ) async throws {
        let (rows, row) = (table.declaration.asBytes, key.bytes)
        try await server.project.store.write { transaction in
            try transaction.putDamaged(rows, row, try transaction.get(rows, row) ?? [])
        }
    }

    private static func makeTenant(_ tenantID: Text, _ client: RawClient) throws {
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
    }

    private static func makeUser(_ uid: Text, of tenantID: Text, _ client: RawClient) throws {
        let _: UsersCreateResponse = try client.call(
            "postern.v1.Users/Create", UsersCreateRequest(tenantID: tenantID, uid: uid))
    }

    @Test func `A log whose head is damaged takes no event, and other tenants go on`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for tenantID in ["aaaa", "bbbb"] as [Text] {
                try Self.makeTenant(tenantID, client)
                try Self.makeUser("u1", of: tenantID, client)
            }
            try await Self.damage(Schema.eventHeads, TenantPrefix("aaaa"), server)
            expectRefusal("CORRUPT_RECORD") { try Self.makeUser("u2", of: "aaaa", client) }
            try Self.makeUser("u2", of: "bbbb", client)
            // What writes no event goes on.
            let found: UsersGetResponse = try client.call(
                "postern.v1.Users/Get", UsersGetRequest(tenantID: "aaaa", uid: "u1"))
            #expect(found.user?.uid == "u1")
            expectRefusal("USER_NOT_FOUND") {
                let _: UsersGetResponse = try client.call(
                    "postern.v1.Users/Get", UsersGetRequest(tenantID: "aaaa", uid: "u2"))
            }
        }
    }

    @Test func `A refused call of a damaged tenant does not keep those of others from their logs`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for tenantID in ["aaaa", "bbbb"] as [Text] {
                try Self.makeTenant(tenantID, client)
                let made: ProjectCreateApiKeyResponse = try client.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID(tenantID))))
                let bound = try server.connect(authenticated: false)
                bound.apiKey = made.secretKey
                // Ten are written at once, and the others counted.
                for _ in 0..<12 {
                    expectRefusal("INSUFFICIENT_PERMISSION") {
                        let _: ProjectStatsResponse = try bound.call("postern.v1.Project/Stats", ProjectStatsRequest())
                    }
                }
            }
            try await Self.damage(Tables.tenants, TenantPrefix("aaaa"), server)
            server.clock.advance(by: .minutes(10))
            await server.project.sweep()
            let details = try server.project.store.read { transaction in
                var details: [Text] = []
                try transaction.scanEvents(tenant: "bbbb") { event in
                    details.append(try EventRecord(decoding: event.payload).detail)
                    return true
                }
                return details
            }
            #expect(details.contains("2 more calls"))
        }
    }

    /// Each new revocation, of whatever tenant, is written behind the newest one.
    @Test func `A damaged revocation keeps nobody else's from being written, and goes in its time`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for tenantID in ["aaaa", "bbbb"] as [Text] {
                try Self.makeTenant(tenantID, client)
                try Self.makeUser("u1", of: tenantID, client)
                let _: UsersRevokeTokensResponse = try client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(tenantID: tenantID, uid: "u1"))
            }
            let store = server.project.store
            let last = try store.read { try $0.lastRevocationSequence() }
            try await Self.damage(Tables.revocations, SequenceKey("bbbb", last), server)
            try await Self.damage(Tables.revocationTenants, RevocationKey(last), server)
            let _: UsersRevokeTokensResponse = try client.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(tenantID: "aaaa", uid: "u1"))
            #expect(try store.read { try $0.lastRevocationSequence() } == last + 1)
            // It is not passed over by whoever has to know it.
            #expect(throws: StoreError.self) {
                _ = try store.read { try $0.revocations(of: "bbbb", after: 0, limit: 9) }
            }
            try await server.project.sweepForAll()
            server.clock.advance(by: .days(14))
            try await server.project.sweepForAll()
            func rowCount() throws -> Int {
                try store.read { try $0.firstKeys(tableID: Tables.revocations.id, prefix: [], limit: 9).keys.count }
            }
            #expect(try rowCount() == 3)
            server.clock.advance(by: .days(1))
            try await server.project.sweepForAll()
            #expect(try rowCount() == 1)
        }
    }

    /// Verifiers ask for what comes behind the sequence that they know.
    @Test func `The sequence of revocations goes on behind a newest one that is lost`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.makeTenant("aaaa", client)
            try Self.makeUser("u1", of: "aaaa", client)
            let store = server.project.store
            func revoke() throws -> Int64 {
                let _: UsersRevokeTokensResponse = try client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(tenantID: "aaaa", uid: "u1"))
                return try store.read { try $0.lastRevocationSequence() }
            }
            let last = try revoke()
            try await store.write { _ = try $0.delete(Tables.revocations, SequenceKey("aaaa", last)) }
            #expect(try revoke() == last + 1)
        }
    }

    /// Passing over it would end the snapshot early, and its tokens would be taken for not revoked.
    @Test func `A revocation that is lost is an error to whoever follows all tenants`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.makeTenant("aaaa", client)
            try Self.makeUser("u1", of: "aaaa", client)
            for _ in 0..<2 {
                let _: UsersRevokeTokensResponse = try client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(tenantID: "aaaa", uid: "u1"))
            }
            let store = server.project.store
            let last = try store.read { try $0.lastRevocationSequence() }
            try await store.write { _ = try $0.delete(Tables.revocations, SequenceKey("aaaa", last - 1)) }
            let stream = try RevocationTests.watch(server, anyTenant: true)
            expectRefusal("CORRUPT_RECORD") { for _ in 0..<3 { _ = try stream.next() } }
            let newest = try store.read { try $0.revocations(after: last - 1, limit: 9).map(\.sequence) }
            #expect(newest == [last])
        }
    }

    @Test func `A damaged tenant does not keep other tenants' mail from being claimed`() async throws {
        try await withTwoServers { first, second in
            await second.project.mailer.stop()
            let client = try first.connect()
            for tenantID in ["aaaa", "bbbb"] as [Text] { try Self.makeTenant(tenantID, client) }
            let (due, end) = (first.project.clock.now() + .minutes(1), first.project.clock.now() + .hours(1))
            try await first.project.store.write { transaction in
                for tenantID in ["aaaa", "bbbb"] as [Text] {
                    let message = OutboxMessage(
                        messageID: "m1", to: "ada@example.com", state: .pending,
                        nextAttemptAtMicros: due.microseconds, expiresAtMicros: end.microseconds)
                    try transaction.putOutbox(StoredOutboxMessage(message: message), tenantID: tenantID)
                }
            }
            // Each write of the tenant's rows reads their sum, which is counted anew.
            try await Self.damage(Schema.tenantUsage, TenantPrefix("aaaa"), first)
            first.clock.advance(by: .minutes(1))
            first.project.mailer.wakeNow()
            func isDue() throws -> Bool {
                try first.project.store.read { try $0.exists(Tables.outboxDue, OutboxDueKey(due, "bbbb", "m1")) }
            }
            try await until("the other tenant's mail is settled") { try !isDue() }
        }
    }

    /// The first damage is found when the backup is read, the second when the restored store is opened.
    @Test(arguments: [true, false])
    func `A backup of a damaged store is refused and changes nothing`(_ isOfMAC: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let data = directory + "/data"
            let backup = try await withServer(directory: data, clock: clock, masterKey: masterKey) { server in
                if isOfMAC {
                    try Self.makeUser("u1", of: "", try server.connect())
                    try await Self.damage(Tables.users, UserKey("", "u1"), server)
                } else {
                    let rows = SigningTables.keys.declaration.asBytes
                    // The length of a field that is not there.
                    try await server.project.store.write { try $0.put(rows, [1], [0x0A, 0x7F]) }
                }
                return try BackupTests.take(server)
            }
            BackupTests.write(masterKey, to: data + "/master-key")
            writeFile(directory + "/backup", backup)
            let before = readFile(data + "/data.mdb")
            let ended = try BackupTests.posternd(data, ["--restore-backup", directory + "/backup"])
            #expect(ended.status == 65, "\(ended.said)")
            #expect(ended.said.contains("\(directory)/backup: the store in the backup is damaged"), "\(ended.said)")
            #expect(readFile(data + "/data.mdb") == before && access(data + "/restore.new", F_OK) != 0)
        }
    }
}
