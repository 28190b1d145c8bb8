import Base
import Glibc
import Messages
import Signing
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// One damaged row of each table in turn, and all work in the background: the rows of others are dealt with. Tables
/// that are declared later are covered, too.
@Suite struct DamagedRowsTests {
    /// Without the store's own notes, whose damage refuses a start, the schedule of expiry (`ExpiryTests`), and the
    /// leases, which another node of a cluster takes over.
    private static let tables = (Schema.own + Tables.all).filter {
        ![Schema.meta.id, Schema.expiry.id, Tables.leases.id].contains($0.id)
    }

    /// The rows of "mmmm" are damaged, or rows between those of all three.
    private static let tenants: [Text] = ["aaaa", "mmmm", "zzzz"]

    // MARK: What there is to do

    private static func makeTenant(_ tenantID: Text, _ server: TestServer) async throws {
        _ = try AnonymousExpiryTests.makeUser(in: tenantID, server)
        let now = server.project.clock.now()
        let message = OutboxMessage(
            messageID: "m1", to: "ada@example.com", state: .pending, createdAtMicros: now.microseconds,
            nextAttemptAtMicros: (now + .minutes(1)).microseconds, expiresAtMicros: (now + .hours(1)).microseconds)
        try await server.project.store.write { transaction in
            var record = try #require(try transaction.get(Tables.tenants, TenantPrefix(tenantID)))
            record.tenant?.eventRetentionSeconds = 86_400
            try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
            try transaction.putOutbox(StoredOutboxMessage(message: message), tenantID: tenantID)
        }
    }

    private static func makeWork(_ server: TestServer) async throws {
        for tenantID in tenants { try await makeTenant(tenantID, server) }
        let _: TenantsCreateResponse = try server.connect().call(
            "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "qqqq"))
        let now = server.project.clock.now()
        try await server.project.store.write { transaction in
            // The newest revocation stays: that of "aaaa".
            for tenantID in tenants.reversed() {
                try transaction.revokeTokens(of: UserKey(tenantID, "u"), before: now, now: now)
            }
            for row in 1...3 as ClosedRange<UInt8> {
                try transaction.put(
                    Tables.guesses, GuessRowKey(time: now, serverID: 1, row: UInt64(row)), StoredGuesses())
                let id = HashKey([UInt8](repeating: row, count: 32))
                try transaction.put(Tables.usedTokenIDs, id, StoredUsedTokenID())
                try transaction.scheduleExpiry(at: now + .hours(1), Tables.usedTokenIDs, id)
            }
        }
        _ = try await server.project.signingKeys.rotate(
            for: .idToken, algorithm: nil, publishAhead: .zero, origin: .server)
    }

    /// As if the server had been killed in the middle of a deletion.
    private static func leaveDeletion(_ server: TestServer) async throws {
        try await server.project.store.write { transaction in
            var record = try #require(try transaction.get(Tables.tenants, TenantPrefix("qqqq")))
            record.deleted = true
            try transaction.put(Tables.tenants, TenantPrefix("qqqq"), record)
        }
    }

    // MARK: Damage

    /// The row in the middle of the table, or of those of "mmmm". A table without such rows gets one.
    private static func damageRow(of table: TableDeclaration, _ server: TestServer) async throws {
        let isOfTenant = table.owner.isKeyPrefix || table.id == Schema.tenantUsage.id
        let prefix = isOfTenant ? TenantPrefix("mmmm").bytes : []
        try await server.project.store.write { transaction in
            var keys = try transaction.reading.firstKeys(tableID: table.id, prefix: prefix, limit: 100).keys
            if table.id == Tables.sessions.id {
                keys = []
                try transaction.reading.scanKeys(of: Tables.sessionByUser, prefix: TenantPrefix("mmmm")) { key in
                    keys.append(key.sessionID)
                    return true
                }
            }
            if keys.isEmpty { keys = [prefix + [UInt8](repeating: 1, count: 8)] }
            let key = keys[keys.count / 2]
            try transaction.putDamaged(table.asBytes, key, try transaction.get(table.asBytes, key) ?? [])
        }
    }

    // MARK: What is done

    private static func has(
        _ tableID: UInt8, _ prefix: [UInt8], _ transaction: borrowing ReadTransaction
    ) throws -> Bool {
        try !transaction.firstKeys(tableID: tableID, prefix: prefix, limit: 1).keys.isEmpty
    }

    /// The pieces of work on other rows that were not done.
    private static func leftUndone(_ server: TestServer) throws -> Set<String> {
        var undone: Set<String> = []
        if server.project.signingKeys.idTokens.list().count > 1 { undone.insert("signing keys") }
        try server.project.store.read { transaction in
            for tenantID in ["aaaa", "zzzz"] as [Text] {
                let prefix = TenantPrefix(tenantID).bytes
                if try has(Tables.anonymousUsers.id, prefix, transaction) { undone.insert("anonymous users") }
                let first = EventKey(tenant: tenantID, sequence: 1).bytes
                if try has(Schema.events.id, first, transaction) { undone.insert("events") }
                if try has(Tables.outboxDue.id, prefix, transaction) { undone.insert("mail") }
            }
            let revocation = SequenceKey("zzzz", 1).bytes
            if try has(Tables.revocations.id, revocation, transaction) { undone.insert("revocations") }
            if try transaction.get(Tables.tenants, TenantPrefix("qqqq"))?.purged != true { undone.insert("purge") }
            for row in [1, 3] as [UInt8] {
                let id = [UInt8](repeating: row, count: 32)
                if try has(Tables.usedTokenIDs.id, id, transaction) { undone.insert("expiry") }
            }
            if try has(Tables.guesses.id, [], transaction) { undone.insert("guesses") }
        }
        return undone
    }

    private static func isMailDone(_ server: TestServer) throws -> Bool { try !leftUndone(server).contains("mail") }

    @Test(arguments: tables.map(\.name.description))
    func `Work in the background goes on around a damaged row`(_ name: String) async throws {
        let table = try #require(Self.tables.first { $0.name.description == name })
        let failures = Counter()
        let log = Log(level: .error) { line in
            if String(decoding: line, as: UTF8.self).contains("the sweep failed") { failures.add() }
        }
        try await withServer(log: log) { server in
            try await Self.makeWork(server)
            await server.project.sweep()
            try await Self.damageRow(of: table, server)
            try await Self.leaveDeletion(server)
            server.clock.advance(by: .minutes(1))
            server.project.mailer.wakeNow()
            try await until("the other tenants' mail is settled") { try Self.isMailDone(server) }
            var pass = OutboxPass()
            _ = try server.project.outbox.census(&pass)
            // The first of these sweeps notes the time anew if the note is damaged.
            for _ in 0..<2 {
                server.clock.advance(by: .days(31))
                await server.project.sweep()
            }
            // While a key is damaged, none is deleted.
            let expected: Set<String> = table.id == SigningTables.keys.id ? ["signing keys"] : []
            #expect(try Self.leftUndone(server) == expected)
            #expect(failures.value == 0)
        }
    }

    private static func pieceKeys(_ store: Store) throws -> [[UInt8]] {
        try store.read { try $0.keys(of: Schema.pieces, after: nil, limit: 1_000) }
    }

    /// A long value lies in pieces, which go with it, whichever of them is missing.
    @Test(arguments: [0, 2, 4])
    func `A deleted tenant leaves nothing of a damaged long value`(_ missing: Int) async throws {
        try await withServer { server in
            try await Self.makeWork(server)
            let store = server.project.store
            let others = Set(try Self.pieceKeys(store))
            let key = TenantPrefix("qqqq").bytes + [UInt8](repeating: 1, count: 32)
            try await store.write { transaction in
                let table = Tables.hashSecrets.declaration.asBytes
                try transaction.put(table, key, [UInt8](repeating: 7, count: 20_000))
            }
            let keys = try Self.pieceKeys(store).filter { !others.contains($0) }
            #expect(keys.count == 5)
            try await store.write { _ = try $0.delete(Schema.pieces, keys[missing]) }
            try await Self.leaveDeletion(server)
            // The second sweep mends what the purge in the first one noted.
            for _ in 0..<2 {
                try await server.project.sweepForAll()
                await server.project.sweep()
            }
            let left = Set(try Self.pieceKeys(store))
            #expect(left == others)
            try store.read { transaction in
                let isPurged = try transaction.get(Tables.tenants, TenantPrefix("qqqq"))?.purged == true
                let sum = try transaction.usage(ofTenant: "qqqq")
                let counted = try transaction.countedUsage(ofTenant: "qqqq")
                let isMended = try transaction.isMended()
                #expect(isPurged && isMended && sum == counted)
            }
        }
    }
}

extension TableDeclaration {
    /// The table by its id alone, to put something into it that is none of its records.
    var asBytes: Table<[UInt8], [UInt8]> { Table(id: id, name: name, owner: owner, purge: purge) }
}

extension WriteTransaction {
    /// Puts a row whose MAC is wrong, as if the disk had returned something else than was written.
    func putDamaged(_ table: Table<[UInt8], [UInt8]>, _ key: [UInt8], _ value: [UInt8]) throws {
        try put(table, key, value)
        guard let address = try reading.borrowedValue(table, key)?.baseAddress else {
            throw StoreError.corrupt(table: table.name.description)
        }
        // Proof: the row was put in this write, so that its page is a copy in memory which only this write sees. The
        // last byte of its MAC is before its value.
        let mac = UnsafeMutableRawPointer(mutating: address - 1)
        mac.storeBytes(of: mac.load(as: UInt8.self) ^ 1, as: UInt8.self)
    }
}
