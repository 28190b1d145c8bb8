import Base
import Messages
import Store

extension ReadTransaction {
    /// What a code is for. INVALID_OOB_CODE, EXPIRED_OOB_CODE.
    func oobCode(_ code: Secret, tenantID: Text, now: Timestamp) throws -> StoredOobCode {
        guard let stored = try get(Tables.oobCodes, TenantHashKey(tenantID, OobCodes.hash(code))), !stored.decoy else {
            throw Failure.invalidOobCode
        }
        guard now < Timestamp(microseconds: stored.expiresAtMicros) else { throw Failure.expiredOobCode }
        return stored
    }
}

extension WriteTransaction {
    /// Keeps a new code, and voids the older ones it replaces.
    func putOobCode(_ code: Secret, _ stored: StoredOobCode, tenantID: Text) throws {
        let hash = OobCodes.hash(code)
        let subject = OobCodes.subject(of: stored)
        let kind = UInt8(stored.requestType.rawValue)
        if OobCodes.isVoidedByNewer(stored.requestType) {
            try removeOobCodes(OobSubjectKey(tenantID, subject: subject, kind: kind))
        }
        let key = TenantHashKey(tenantID, hash)
        try put(Tables.oobCodes, key, stored)
        try put(Tables.oobCodeBySubject, OobSubjectKey(tenantID, subject: subject, kind: kind, codeHash: hash), [])
        let forgottenAt = Timestamp(microseconds: stored.expiresAtMicros) + OobCodes.rememberedAfterExpiry
        try scheduleExpiry(at: forgottenAt, Tables.oobCodes, key)
    }

    /// Uses a code up, in the transaction of what it is for. INVALID_OOB_CODE, EXPIRED_OOB_CODE.
    func takeOobCode(_ code: Secret, _ type: OobRequestType, tenantID: Text, now: Timestamp) throws -> StoredOobCode {
        let stored = try reading.oobCode(code, tenantID: tenantID, now: now)
        guard stored.requestType == type else { throw Failure.invalidOobCode }
        try removeOobCode(hash: OobCodes.hash(code), stored, tenantID: tenantID)
        return stored
    }

    /// Voids everything that was sent on an account's behalf: what its user asked for before somebody else proved to be
    /// its owner must not work afterwards, the way back to an old email included.
    func removeOobCodes(of key: UserKey, where isVoid: (StoredOobCode) -> Bool = { _ in true }) throws {
        try removeOobCodes(OobSubjectKey(key.tenant, subject: OobCodes.subject(uid: key.uid)), where: isVoid)
    }

    /// Voids what somebody asked for in a session that ended because it may have been somebody else's.
    func removeOobCodesAskedFromSessions(of key: UserKey) throws {
        try removeOobCodes(of: key) { $0.requestType == .verifyAndChangeEmail }
    }

    /// What `Project.sweep` does with a code whose time has come.
    func forgetOobCode(_ key: [UInt8]) throws {
        guard let zero = key.firstIndex(of: 0) else { return }
        let tenantID = Text(unchecked: Array(key[..<zero]))
        let hash = Array(key[(zero + 1)...])
        guard let stored = try get(Tables.oobCodes, TenantHashKey(tenantID, hash)) else { return }
        try removeOobCode(hash: hash, stored, tenantID: tenantID)
    }

    private func removeOobCodes(
        _ prefix: OobSubjectKey, where isVoid: (StoredOobCode) -> Bool = { _ in true }
    ) throws {
        var hashes: [[UInt8]] = []
        try scan(Tables.oobCodeBySubject, prefix: prefix) { key, _ in
            hashes.append([UInt8](key.suffix(32)))
            return true
        }
        for hash in hashes {
            guard let stored = try get(Tables.oobCodes, TenantHashKey(prefix.tenant, hash)), isVoid(stored) else {
                continue
            }
            try removeOobCode(hash: hash, stored, tenantID: prefix.tenant)
        }
    }

    private func removeOobCode(hash: [UInt8], _ stored: StoredOobCode, tenantID: Text) throws {
        try delete(Tables.oobCodes, TenantHashKey(tenantID, hash))
        try delete(
            Tables.oobCodeBySubject,
            OobSubjectKey(
                tenantID, subject: OobCodes.subject(of: stored), kind: UInt8(stored.requestType.rawValue),
                codeHash: hash))
    }
}
