import Base
import Messages
import Rules
import Store

// The owner of a key's quota: the credential with quotas that made or rotated the key. The key's changes are charged to
// the owner as well. Otherwise a limited key could make more keys, each of which has the limits once more:
// docs/decisions/0098.

extension ReadTransaction {
    /// The owner of a key's quota, with the role and the quotas that it has now; nil for a key without an owner.
    ///
    /// A revoked, expired or disabled owner keeps the quotas in its record. Without a record, or with a damaged one,
    /// the copy in the key's record counts.
    func quotaOwner(of stored: StoredApiKey) throws -> QuotaHolder? {
        guard let id = stored.apiKey?.quotaOwnerID, !id.isEmpty else { return nil }
        let copy = QuotaHolder(
            id: id, role: stored.quotaOwnerRole, quotas: stored.quotaOwnerQuotas ?? CallerQuotas())
        do {
            return try quotaHolder(id) ?? copy
        } catch StoreError.corrupt {
            return copy
        }
    }

    /// The role and the quotas in the record of a caller's credential; nil if there is no record.
    private func quotaHolder(_ id: Text) throws -> QuotaHolder? {
        let record = CredentialMarks.record(ofCaller: id)
        let key = TextKey(record.id)
        switch record.kind {
        case .apiKey:
            return try get(Tables.apiKeys, key)?.apiKey.map {
                QuotaHolder(id: id, role: $0.role, quotas: $0.quotas ?? CallerQuotas())
            }
        case .serviceAccount:
            // The record of a deleted account keeps the quotas.
            return try get(Tables.serviceAccounts, key)?.serviceAccount.map {
                QuotaHolder(id: id, role: $0.role, quotas: $0.quotas ?? CallerQuotas())
            }
        case .certificate:
            return try get(Tables.certificateMappings, key)?.certificateMapping.map {
                QuotaHolder(id: id, role: $0.role, quotas: $0.quotas ?? CallerQuotas())
            }
        }
    }
}

extension StoredApiKey {
    /// Sets the owner of the key's quota, in this record and in `key`; nil: the key has its own quotas only.
    mutating func setQuotaOwner(_ owner: QuotaHolder?, of key: inout ApiKey) {
        key.quotaOwnerID = owner?.id ?? .empty
        quotaOwnerRole = owner?.role ?? .unspecified
        quotaOwnerQuotas = owner?.quotas
    }
}

extension CredentialMarks {
    /// The kind and the id of the record behind a caller's id.
    static func record(ofCaller id: Text) -> (kind: Kind, id: Text) {
        let prefix = Caller.certificatePrefix
        if id.bytes.starts(with: prefix) {
            return (.certificate, Text(unchecked: Array(id.bytes.dropFirst(prefix.count))))
        }
        guard id.bytes.contains(UInt8(ascii: "@")) else { return (.apiKey, id) }
        return (.serviceAccount, ServiceAccountSigners.accountID(ofEmail: id))
    }
}
