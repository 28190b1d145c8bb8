import Base
import Crypto
public import Messages
public import Rules
import Store

/// One import: checks each row on its own, writes a batch in one transaction, counts what became of every row.
///
/// A row that is refused changes nothing and is reported with its index over the whole import; the others go in.
public struct UserImporter: Sendable {
    private let resources: Resources
    private let users: UserDirectory
    private let hashes: ImportedHashes
    private let onConflict: ImportConflict
    private let settings: TenantSettings
    private let origin: Origin
    private var progress = UsersImportResponse()

    init(
        resources: Resources, users: UserDirectory, hashes: ImportedHashes, onConflict: ImportConflict,
        settings: TenantSettings,
        origin: Origin
    ) {
        self.resources = resources
        self.users = users
        self.hashes = hashes
        self.onConflict = onConflict
        self.settings = settings
        self.origin = origin
    }

    /// Settles one batch durably. The counts are of all batches so far, the rejections of this one.
    public mutating func importBatch(_ users: [ImportUser]) async throws -> UsersImportResponse {
        let first = progress.checkpoint
        let now = resources.clock.now()
        let limits = resources.limits
        var rows: [(index: Int64, account: Account)] = []
        var rejections: [ImportRejection] = []
        for (offset, user) in users.enumerated() {
            let index = first + Int64(offset)
            do throws(Failure) {
                rows.append((index, try hashes.account(of: user, settings: settings, limits: limits, now: now)))
            } catch {
                rejections.append(Self.rejection(index, user.uid, error))
            }
        }
        let onConflict = onConflict
        let origin = origin
        let accounts = rows.map(\.account)
        let results = try await self.users.changing(accounts.map(\.key)) {
            try await resources.store.write { transaction in
                try accounts.map { try transaction.importAccount($0, onConflict: onConflict, origin: origin, now: now) }
            }
        }
        for (row, result) in zip(rows, results) {
            switch result {
            case .created: progress.createdCount += 1
            case .replaced: progress.replacedCount += 1
            case .skipped: progress.skippedCount += 1
            case .refused(let failure): rejections.append(Self.rejection(row.index, row.account.user.uid, failure))
            }
        }
        progress.checkpoint = first + Int64(users.count)
        progress.ignoredClaims = []
        for name in rows.flatMap({ Values.ignoredClaims(in: $0.account.user.customClaimsJSON) })
        where !progress.ignoredClaims.contains(name) {
            progress.ignoredClaims.append(name)
        }
        progress.rejections = rejections.sorted { $0.index < $1.index }
        return progress
    }

    private static func rejection(_ index: Int64, _ uid: Text, _ failure: Failure) -> ImportRejection {
        ImportRejection(index: index, uid: uid, reason: Text(failure.reason), message: Text(failure.message))
    }
}

/// Makes the importers.
public struct UserImports: Sendable {
    let resources: Resources
    let users: UserDirectory
    let passwords: PasswordService

    /// Begins an import. INVALID_HASH_SPEC.
    public func begin(
        spec: PasswordHashSpec?, onConflict: ImportConflict, settings: TenantSettings, origin: Origin
    ) async throws -> UserImporter {
        let hashes = try await ImportedHashes(
            spec, passwords: passwords, store: resources.store, tenantID: settings.tenantID)
        return UserImporter(
            resources: resources, users: users, hashes: hashes, onConflict: onConflict, settings: settings,
            origin: origin)
    }
}

/// The result of one row.
enum ImportResult: Sendable {
    case created
    case replaced
    case skipped
    case refused(Failure)
}

extension WriteTransaction {
    /// Checks come before the first put of the row, so that a refused row leaves no trace in the batch.
    fileprivate func importAccount(
        _ account: Account, onConflict: ImportConflict, origin: Origin, now: Timestamp
    ) throws -> ImportResult {
        let key = UserKey(account.user.tenantID, account.user.uid)
        var account = account
        do {
            account.user.providers = try account.user.providers.map { try reading.bound($0, tenantID: key.tenant) }
            guard let existing = try reading.account(key) else {
                try checkInsertable(account)
                try insert(account, origin: origin, kind: .userImported, now: now)
                return .created
            }
            switch onConflict {
            case .skip: return .skipped
            case .unspecified, .fail: return .refused(.duplicateUID)
            case .replace:
                try checkUnique(account, key: key)
                var replacement = account
                replacement.user.tokensValidAfterMicros = existing.user.tokensValidAfterMicros
                // An import brings no factors, and must not take those away that protect the account.
                replacement.user.secondFactors = existing.user.secondFactors
                replacement.user.recoveryCodeCount = existing.user.recoveryCodeCount
                replacement.revokeTokens(.admin, now: now)
                try replace(existing, by: replacement, origin: origin, kind: .userImported, now: now)
                try endSessions(of: key, .admin, now: now)
                if replacement.hasOtherEmail(than: existing) { try removeOobCodes(of: key) }
                return .replaced
            }
        } catch let failure as Failure {
            return .refused(failure)
        }
    }
}
