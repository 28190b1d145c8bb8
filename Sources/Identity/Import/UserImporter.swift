import Base
import Crypto
public import Messages
public import Rules
import Store

/// One import: checks each row on its own, writes a batch in a few transactions, counts the results of the rows.
///
/// A row that is refused changes nothing and is reported with its index over the whole import; the other rows are
/// imported.
public struct UserImporter: Sendable {
    private let resources: Resources
    private let users: UserDirectory
    private let secrets: FactorSecrets
    private var hashes: ImportedHashes
    private let onConflict: ImportConflict
    private let validateOnly: Bool
    /// The tenant's present settings. The caller renews them before each batch, because a stream may live for long.
    public var settings: TenantSettings
    private let origin: Origin
    /// The counts of all batches so far.
    private var progress = UsersImportResponse()
    private static let rowsPerTurn = 25

    init(
        _ imports: UserImports, hashes: ImportedHashes, onConflict: ImportConflict, validateOnly: Bool,
        settings: TenantSettings, origin: Origin
    ) {
        self.resources = imports.resources
        self.users = imports.users
        self.secrets = imports.secrets
        self.hashes = hashes
        self.onConflict = onConflict
        self.validateOnly = validateOnly
        self.settings = settings
        self.origin = origin
    }

    /// Imports one batch durably; of a batch that fails, the first users may be imported. The counts are of all batches
    /// so far, the rejections are of this batch.
    ///
    /// `workTurn` is awaited before each few rows: to check a row takes some microseconds, and a loop has other
    /// connections.
    public mutating func importBatch(
        _ request: UsersImportRequest, workTurn: () async throws -> Void
    ) async throws -> UsersImportResponse {
        try await hashes.add(request.hashSpecs, validateOnly: validateOnly, limits: resources.limits)
        let first = progress.checkpoint
        let (now, limits) = (resources.clock.now(), resources.limits)
        var rows: [ImportedRow] = []
        var rejections: [ImportRejection] = []
        for (offset, user) in request.users.enumerated() {
            if offset % Self.rowsPerTurn == 0 { try await workTurn() }
            let index = first + Int64(offset)
            do {
                let account = try hashes.account(of: user, settings: settings, limits: limits, now: now)
                let factors = try ImportedFactors(
                    user.secondFactors, of: account.key, secrets: secrets, limits: limits, now: now)
                rows.append(ImportedRow(index: index, account: account, factors: factors))
            } catch let failure as Failure {
                rejections.append(rejection(index, user.uid, failure))
            }
        }
        let (onConflict, origin, validateOnly) = (onConflict, origin, validateOnly)
        let clock = resources.clock
        let results = try await users.changing(each: rows, key: \.account.key) { transaction, row in
            // The time of this run: device tokens of sign-ins that came before it must not count for a new password.
            try transaction.importRow(
                row, onConflict: onConflict, validateOnly: validateOnly, origin: origin, now: clock.now())
        }
        for (row, result) in zip(rows, results) {
            switch result {
            case .created: progress.createdCount += 1
            case .replaced: progress.replacedCount += 1
            case .skipped: progress.skippedCount += 1
            case .refused(let failure): rejections.append(rejection(row.index, row.account.user.uid, failure))
            }
        }
        progress.checkpoint = first + Int64(request.users.count)
        // An import that waits for its next batch keeps the counts alone.
        var answer = progress
        for name in rows.flatMap({ Values.ignoredClaims(in: $0.account.user.customClaimsJSON) })
        where !answer.ignoredClaims.contains(name) {
            answer.ignoredClaims.append(name)
        }
        answer.rejections = rejections.sorted { $0.index < $1.index }
        return answer
    }

    private func rejection(_ index: Int64, _ uid: Text, _ failure: Failure) -> ImportRejection {
        ImportRejection(
            index: index, uid: Values.shortenedUID(uid, limits: resources.limits), reason: Text(failure.reason),
            message: Text(failure.message))
    }
}

/// Makes the importers.
public struct UserImports: Sendable {
    let resources: Resources
    let users: UserDirectory
    let passwords: PasswordService
    let secrets: FactorSecrets
    /// The places of batches, of which each takes one before it is decoded.
    public let places: ImportPlaces
    public let specPlaces: HashSpecPlaces

    /// Begins an import as its first request says. INVALID_HASH_SPEC, TENANT_NOT_FOUND.
    public func begin(
        _ first: UsersImportRequest, settings: TenantSettings, origin: Origin
    ) async throws -> UserImporter {
        var hashes = ImportedHashes(
            passwords: passwords, store: resources.store, tenantID: settings.tenantID, places: specPlaces)
        try await hashes.add(first.spec, validateOnly: first.validateOnly)
        return UserImporter(
            self, hashes: hashes, onConflict: first.onConflict, validateOnly: first.validateOnly, settings: settings,
            origin: origin)
    }
}

/// A row whose own fields passed the checks.
struct ImportedRow: Sendable {
    let index: Int64
    let account: Account
    let factors: ImportedFactors
}

extension Account {
    /// An import answers for the email that it writes, unless the row says that the user typed it. It also answers for
    /// an email that the account has already, unless the account's user may have typed it (`mayBeTyped`): the row may
    /// come from an older server's export, which does not say so. It may take the proof from such an email (decisions
    /// 0011 and 0147).
    fileprivate mutating func noteEmailSetByImport(over existing: Account, mayBeTyped: Bool) {
        if hasTypedEmail {
            // An admin of this tenant may have vouched for the same email.
            guard !hasOtherEmail(than: existing), !existing.user.emailVerified else { return }
            return noteEmailSetByAdmin(over: existing)
        }
        noteEmailSetByAdmin(over: mayBeTyped ? existing : nil)
    }
}

extension ReadTransaction {
    /// Whether the email that the account has may be one that its user typed, and another person's: the account has
    /// second factors, is that of a back end's user, or was moved to the email from another one that was proved.
    fileprivate func mayHaveTypedEmail(_ account: Account, now: Timestamp) throws -> Bool {
        if account.signsInByCustomToken || !account.user.secondFactors.isEmpty { return true }
        guard account.hasTypedEmail else { return false }
        return try !waysBack(of: account.key, now: now).isEmpty
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
    fileprivate func importRow(
        _ row: ImportedRow, onConflict: ImportConflict, validateOnly: Bool, origin: Origin, now: Timestamp
    ) throws -> ImportResult {
        var account = row.account
        let key = account.key
        do {
            account.user.providers = try account.user.providers.map { try reading.bound($0, tenantID: key.tenant) }
            guard let existing = try reading.account(key) else {
                try checkInsertable(account)
                if validateOnly { return .created }
                try putFactors(row.factors, to: &account)
                _ = try insertUnderChosenUID(account, origin: origin, kind: .userImported, now: now)
                return .created
            }
            switch onConflict {
            case .skip: return .skipped
            case .unspecified, .fail: return .refused(.duplicateUID)
            case .replace:
                try checkUnique(account, key: key)
                if validateOnly { return .replaced }
                var replacement = account
                let mayBeTyped = try reading.mayHaveTypedEmail(existing, now: now)
                replacement.noteEmailSetByImport(over: existing, mayBeTyped: mayBeTyped)
                if existing.signsInByCustomToken { replacement.signsInByCustomToken = true }
                replacement.importedAt = existing.importedAt
                replacement.user.tokensValidAfterMicros = existing.user.tokensValidAfterMicros
                // Device tokens that were obtained with the former password do not count for another one, no matter
                // how old that one is elsewhere.
                if replacement.hasPassword, replacement.passwordHash != existing.passwordHash {
                    replacement.passwordUpdatedAt = now
                }
                // An import must not take away the factors that protect the account.
                replacement.user.secondFactors = existing.user.secondFactors
                replacement.user.recoveryCodeCount = existing.user.recoveryCodeCount
                if existing.user.secondFactors.isEmpty { try putFactors(row.factors, to: &replacement) }
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
