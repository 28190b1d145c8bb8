import Base
import Messages
public import Store

/// Whether the records of the domain agree with each other: each index with what it finds, in both directions.
///
/// Rows of tenants that are being deleted are left out: their tables are emptied one after the other.
public enum RecordAudit {
    public static func run(_ transaction: borrowing ReadTransaction, _ findings: inout Findings) throws {
        let live = try liveTenants(transaction)
        try compareUsers(transaction, live, &findings)
        try compareSessions(transaction, live, &findings)
        try compareCodes(transaction, live, &findings)
        try compareMail(transaction, live, &findings)
        try compareRevocations(transaction, &findings)
    }

    private static func liveTenants(_ transaction: borrowing ReadTransaction) throws -> Set<Text> {
        var live: Set<Text> = []
        try transaction.scan(Tables.tenants) { key, value in
            let record = try StoredTenant(decoding: value, limits: Limits())
            if !record.deleted { live.insert(tenant(of: key)) }
            return true
        }
        return live
    }

    private static func tenant(of key: UnsafeRawBufferPointer) -> Text {
        Text(unchecked: [UInt8](key.prefix { $0 != 0 }))
    }

    private static func afterTenant(_ key: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](key.drop { $0 != 0 }.dropFirst())
    }

    /// Each user's names lead to the user; there are as many rows in the indexes as names.
    private static func compareUsers(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        var nameCounts = (emails: 0, phones: 0, identities: 0)
        var row = 0
        try transaction.scan(Tables.users) { key, value in
            defer { row += 1 }
            let tenantID = tenant(of: key)
            guard live.contains(tenantID) else { return true }
            let account = try Account(StoredUser(decoding: value, limits: Limits()))
            let uid = afterTenant(key)
            let names = UniqueNames(account)
            func expect(_ owner: [UInt8]?, in index: String) {
                if owner != uid { findings.add("users: not found by \(index)", at: "row \(row)") }
            }
            if let email = names.email {
                nameCounts.emails += 1
                expect(try transaction.get(Tables.userByEmail, TenantTextKey(tenantID, email)), in: "email")
            }
            if let phone = names.phoneNumber {
                nameCounts.phones += 1
                expect(try transaction.get(Tables.userByPhone, TenantTextKey(tenantID, phone)), in: "phone number")
            }
            for identity in Set(names.identities) {
                nameCounts.identities += 1
                expect(try transaction.get(Tables.userByProvider, identity.key(tenantID)), in: "identity")
            }
            return true
        }
        func compare<Key>(_ table: Table<Key, [UInt8]>, _ expected: Int) throws {
            var count = 0
            try transaction.scan(table) { key, _ in
                if live.contains(tenant(of: key)) { count += 1 }
                return true
            }
            if count > expected { findings.add("\(table.name): rows without a user", at: "\(count - expected) rows") }
        }
        try compare(Tables.userByEmail, nameCounts.emails)
        try compare(Tables.userByPhone, nameCounts.phones)
        try compare(Tables.userByProvider, nameCounts.identities)
    }

    /// Adds a finding for each row of `table` that is not sound.
    private static func check<Key, Value>(
        _ table: Table<Key, Value>, _ transaction: borrowing ReadTransaction, orFind what: String,
        _ findings: inout Findings,
        isSound: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        var row = 0
        try transaction.scan(table) { key, value in
            if try !isSound(key, value) { findings.add("\(table.name): \(what)", at: "row \(row)") }
            row += 1
            return true
        }
    }

    private static func compareSessions(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        try check(Tables.sessions, transaction, orFind: "not found by user", &findings) { key, value in
            let session = try StoredSession(decoding: value, limits: Limits())
            guard live.contains(session.tenantID) else { return true }
            let index = UserSessionKey(session.tenantID, session.uid, [UInt8](key))
            return try transaction.exists(Tables.sessionByUser, index)
        }
        try check(Tables.sessionByUser, transaction, orFind: "row without a session", &findings) { key, _ in
            guard live.contains(tenant(of: key)) else { return true }
            return try transaction.exists(Tables.sessions, SessionKey([UInt8](key.suffix(16))))
        }
    }

    private static func compareCodes(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        try check(Tables.oobCodeBySubject, transaction, orFind: "row without a code", &findings) { key, _ in
            let tenantID = tenant(of: key)
            guard live.contains(tenantID) else { return true }
            return try transaction.exists(Tables.oobCodes, TenantHashKey(tenantID, [UInt8](key.suffix(32))))
        }
    }

    private static func compareMail(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        try check(Tables.outboxDue, transaction, orFind: "row without a message", &findings) { key, _ in
            let tenantID = tenant(of: key)
            guard live.contains(tenantID) else { return true }
            // tenant ‖ 0x00 ‖ time (8 bytes) ‖ message id
            let messageID = Text(unchecked: Array(afterTenant(key).dropFirst(8)))
            return try transaction.exists(Tables.outbox, TenantTextKey(tenantID, messageID))
        }
    }

    private static func compareRevocations(
        _ transaction: borrowing ReadTransaction, _ findings: inout Findings
    ) throws {
        try check(Tables.revocationTenants, transaction, orFind: "row without a revocation", &findings) { key, value in
            guard key.count == 8 else { return true }
            let sequence = Int64(bitPattern: UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)))
            let place = SequenceKey(Text(unchecked: [UInt8](value)), sequence)
            return try transaction.exists(Tables.revocations, place)
        }
        let (revocations, tenants) = (
            try transaction.count(Tables.revocations), try transaction.count(Tables.revocationTenants)
        )
        if revocations != tenants {
            findings.add("revocations: not in order", at: "\(revocations) and \(tenants) rows")
        }
    }
}
