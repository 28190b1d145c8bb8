import Base
import Messages
import Store
import Synchronization

/// Deletes, in the sweep, the credentials that are bound to a deleted tenant: API keys, service accounts with their
/// keys, and certificate mappings. Calls with them are refused from the tenant's deletion on.
///
/// Their rows are found by the credential's id, so the purge of the tenant does not find them. A sweep looks at some
/// rows of each table, and the next sweep goes on after them. Each write decides again whether a credential has to go.
final class OrphanedCredentials: Sendable {
    /// Where the next sweep goes on in each table; nil = with the first row.
    private struct Places {
        var apiKeys: TextKey?
        var serviceAccounts: TextKey?
        var certificateMappings: TextKey?
    }

    /// The rows that are looked at between two other jobs.
    private static let rowsTogether = 200
    private static let stepsPerSweep = 25

    private let resources: Resources
    private let places = Mutex(Places())

    init(resources: Resources) { self.resources = resources }

    func sweep() async throws {
        let start = places.withLock { $0 }
        let apiKey = try await sweep(Tables.apiKeys, after: start.apiKeys)
        places.withLock { $0.apiKeys = apiKey }
        let account = try await sweep(Tables.serviceAccounts, after: start.serviceAccounts)
        places.withLock { $0.serviceAccounts = account }
        let mapping = try await sweep(Tables.certificateMappings, after: start.certificateMappings)
        places.withLock { $0.certificateMappings = mapping }
    }

    /// Returns the key after which the next sweep goes on; nil at the end of the table.
    private func sweep<Record: TenantCredential>(
        _ table: Table<TextKey, Record>, after start: TextKey?
    ) async throws -> TextKey? {
        var last = start
        for _ in 0..<Self.stepsPerSweep {
            let found = try orphans(in: table, after: last)
            try await delete(found.orphans, of: table)
            guard let next = found.next else { return nil }
            last = next
            await Task.yield()
        }
        return last
    }

    /// The credentials of deleted tenants among the next rows, and the key after which to go on; nil at the end.
    private func orphans<Record: TenantCredential>(
        in table: Table<TextKey, Record>, after last: TextKey?
    ) throws -> (orphans: [TextKey], next: TextKey?) {
        try resources.store.read { transaction in
            let found = try transaction.keys(of: table, after: last, limit: Self.rowsTogether)
            var orphans: [TextKey] = []
            for key in found {
                do {
                    let scope = try transaction.get(table, key)?.boundScope
                    if try transaction.isOfDeletedTenant(scope) { orphans.append(key) }
                } catch StoreError.corrupt(let name) {
                    resources.damagedRecords.passOver(rowOf: name)
                }
            }
            return (orphans, found.count < Self.rowsTogether ? nil : found.last)
        }
    }

    private func delete<Record: TenantCredential>(_ orphans: [TextKey], of table: Table<TextKey, Record>) async throws {
        var rest = orphans
        while !rest.isEmpty {
            let count = try await resources.store.write { [rest] transaction in
                let time = transaction.beginSlice()
                var count = 0
                for key in rest {
                    if let record = try transaction.get(table, key),
                        try transaction.reading.isOfDeletedTenant(record.boundScope)
                    {
                        try record.delete(under: key, in: transaction)
                    }
                    count += 1
                    if time.isOver { break }
                }
                return count
            }
            rest = Array(rest.dropFirst(count))
        }
    }
}

/// The record of a credential that may be bound to one tenant.
private protocol TenantCredential: Message {
    /// Nil for a record that is only a tombstone.
    var boundScope: Scope? { get }

    func delete(under key: TextKey, in transaction: borrowing WriteTransaction) throws
}

extension StoredApiKey: TenantCredential {
    fileprivate var boundScope: Scope? { apiKey?.scope }

    fileprivate func delete(under key: TextKey, in transaction: borrowing WriteTransaction) throws {
        try transaction.delete(Tables.apiKeys, key)
        try transaction.delete(Tables.apiKeyUses, key)
        guard let tenantID = apiKey?.onlyTenantID else { return }
        try transaction.delete(Tables.apiKeysOfTenants, TenantTextKey(tenantID, key.text))
    }
}

extension StoredServiceAccount: TenantCredential {
    fileprivate var boundScope: Scope? { deleted ? nil : serviceAccount?.scope }

    fileprivate func delete(under key: TextKey, in transaction: borrowing WriteTransaction) throws {
        guard let serviceAccount else { return }
        try transaction.deleteWithKeys(serviceAccount)
    }
}

extension StoredCertificateMapping: TenantCredential {
    fileprivate var boundScope: Scope? { certificateMapping?.scope }

    fileprivate func delete(under key: TextKey, in transaction: borrowing WriteTransaction) throws {
        try transaction.delete(Tables.certificateMappings, key)
    }
}
