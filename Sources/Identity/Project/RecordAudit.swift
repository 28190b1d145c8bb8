import Base
import Messages
import Rules
public import Store

/// Checks that the records of the domain agree with each other: each index with the rows that it finds, in both
/// directions.
///
/// Rows of tenants that are being deleted are left out: their tables are emptied one after the other.
public enum RecordAudit {
    public static func run(_ transaction: borrowing ReadTransaction, _ findings: inout Findings) throws {
        // A start refuses such a store.
        if try transaction.hasLostDefaultPool() { findings.add("tenants: no default pool", at: "first row") }
        let live = try liveTenants(transaction)
        try compareUsers(transaction, live, &findings)
        if try transaction.hasUserIndexes() { try compareCreations(transaction, live, &findings) }
        try compareSessions(transaction, live, &findings)
        try compareCodes(transaction, live, &findings)
        try compareMail(transaction, live, &findings)
        try compareRevocations(transaction, &findings)
    }

    private static func liveTenants(_ transaction: borrowing ReadTransaction) throws -> Set<Text> {
        var live: Set<Text> = []
        try transaction.scan(Tables.tenants) { row in
            if try !row.record.deleted { live.insert(try row.key.tenant) }
            return true
        }
        return live
    }

    /// Checks that each user's names lead to the user, and that the indexes have as many rows as there are names.
    private static func compareUsers(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        var nameCounts = (emails: 0, phones: 0, identities: 0)
        var index = 0
        try transaction.scan(Tables.users) { row in
            defer { index += 1 }
            let key = try row.key
            let tenantID = key.tenant
            guard live.contains(tenantID) else { return true }
            let names = UniqueNames(try Account(row.record))
            func expect(_ owner: [UInt8]?, in table: String) {
                if owner != key.uid.bytes { findings.add("users: not found by \(table)", at: "row \(index)") }
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
        func compare<Key>(_ table: Table<Key, [UInt8]>, _ expected: Int, tenant: (Key) -> Text) throws {
            var count = 0
            try transaction.scan(table) { row in
                if live.contains(tenant(try row.key)) { count += 1 }
                return true
            }
            if count > expected { findings.add("\(table.name): rows without a user", at: "\(count - expected) rows") }
        }
        try compare(Tables.userByEmail, nameCounts.emails) { $0.tenant }
        try compare(Tables.userByPhone, nameCounts.phones) { $0.tenant }
        try compare(Tables.userByProvider, nameCounts.identities) { $0.tenant }
    }

    private static func compareCreations(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        try check(Tables.users, transaction, orFind: "not found by creation", &findings) { row in
            guard live.contains(try row.key.tenant) else { return true }
            return try transaction.exists(Tables.userByCreation, Account(row.record).user.creationKey)
        }
        try check(Tables.userByCreation, transaction, orFind: "row without a user", &findings) { row in
            let key = try row.key
            guard live.contains(key.tenant) else { return true }
            return try transaction.user(UserKey(key.tenant, key.uid))?.creationKey == key
        }
    }

    /// Adds a finding for each row of `table` that is not sound.
    private static func check<Key, Value>(
        _ table: Table<Key, Value>, _ transaction: borrowing ReadTransaction, orFind what: String,
        _ findings: inout Findings,
        isSound: (Row<Key, Value>) throws -> Bool
    ) throws {
        var index = 0
        try transaction.scan(table) { row in
            if try !isSound(row) { findings.add("\(table.name): \(what)", at: "row \(index)") }
            index += 1
            return true
        }
    }

    private static func compareSessions(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        try check(Tables.sessions, transaction, orFind: "not found by user", &findings) { row in
            let session = try row.record
            guard live.contains(session.tenantID) else { return true }
            let index = UserSessionKey(session.tenantID, session.uid, try row.key.sessionID)
            return try transaction.exists(Tables.sessionByUser, index)
        }
        try check(Tables.sessionByUser, transaction, orFind: "row without a session", &findings) { row in
            let key = try row.key
            guard live.contains(key.tenant) else { return true }
            return try transaction.exists(Tables.sessions, SessionKey(key.sessionID))
        }
    }

    private static func compareCodes(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        try check(Tables.oobCodeBySubject, transaction, orFind: "row without a code", &findings) { row in
            let key = try row.key
            guard live.contains(key.tenant) else { return true }
            return try transaction.exists(Tables.oobCodes, TenantHashKey(key.tenant, key.codeHash))
        }
    }

    private static func compareMail(
        _ transaction: borrowing ReadTransaction, _ live: Set<Text>, _ findings: inout Findings
    ) throws {
        try check(Tables.outboxDue, transaction, orFind: "row without a message", &findings) { row in
            let key = try row.key
            guard live.contains(key.tenant) else { return true }
            return try transaction.exists(Tables.outbox, TenantTextKey(key.tenant, key.messageID))
        }
    }

    private static func compareRevocations(
        _ transaction: borrowing ReadTransaction, _ findings: inout Findings
    ) throws {
        try check(Tables.revocationTenants, transaction, orFind: "row without a revocation", &findings) { row in
            let place = SequenceKey(Text(unchecked: [UInt8](row.value)), try row.key.sequence)
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
