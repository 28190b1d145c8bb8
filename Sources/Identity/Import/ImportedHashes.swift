import Base
import Crypto
import Messages
import Rules
import Store

/// Turns the rows of an import into accounts whose password hashes our own checks understand.
struct ImportedHashes: Sendable {
    private static let specNameByteCountMax = 64

    private struct KnownScheme {
        let scheme: PasswordScheme
        /// The length of its hashes, if it tells: Firebase's scrypt encrypts the signer key.
        let hashByteCount: Int?
    }

    /// The schemes by the name that rows use for them; "" is the scheme of rows that name none.
    private var schemes: [Text: KnownScheme] = [:]
    private let refusedCount: Counter
    private let passwords: PasswordService
    private let store: Store
    private let tenantID: Text
    private let held: HeldHashSpecs

    init(passwords: PasswordService, store: Store, tenantID: Text, places: HashSpecPlaces) {
        held = HeldHashSpecs(places, tenantID)
        refusedCount = passwords.refusedImports
        self.passwords = passwords
        self.store = store
        self.tenantID = tenantID
    }

    /// Adds schemes that rows may name from now on. INVALID_HASH_SPEC, SERVER_OVERLOADED.
    mutating func add(_ specs: [NamedHashSpec], validateOnly: Bool, limits: Limits) async throws {
        for named in specs {
            guard (1...Self.specNameByteCountMax).contains(named.name.byteCount), schemes[named.name] == nil,
                named.spec?.algorithm != nil
            else {
                throw Failure.invalid(
                    .invalidHashSpec, field: "hash_specs",
                    "each needs a name of its own, of 1 to \(Self.specNameByteCountMax) bytes, and an algorithm")
            }
            let countMax = limits.administration.importHashSpecsMax
            guard schemes.count - (schemes[.empty] == nil ? 0 : 1) < countMax else {
                throw Failure.invalid(.invalidHashSpec, field: "hash_specs", "must be at most \(countMax)")
            }
            try held.add()
            try await add(named.spec, as: named.name, validateOnly: validateOnly)
        }
    }

    /// Stores the signer key of a spec that has one, sealed, so that its hashes can be checked later.
    /// INVALID_HASH_SPEC.
    mutating func add(_ spec: PasswordHashSpec?, as name: Text = .empty, validateOnly: Bool) async throws {
        guard let spec else { return }
        var kept: (id: Text, record: StoredHashSecret)?
        var keyByteCount: Int?
        let scheme = try PasswordScheme(spec) { signerKey in
            let made = try passwords.signerKeyRecord(signerKey)
            kept = made
            keyByteCount = signerKey.byteCount
            return made.id
        }
        if let kept, !validateOnly { try await keep(kept.record, under: kept.id) }
        guard let scheme else { return }
        let hashesAreAsLongAsKey = if case .firebaseScrypt = scheme { true } else { false }
        schemes[name] = KnownScheme(scheme: scheme, hashByteCount: hashesAreAsLongAsKey ? keyByteCount : nil)
    }

    private func keep(_ record: StoredHashSecret, under id: Text) async throws {
        let key = TenantHashKey(tenantID, id.bytes)
        try await store.write { [tenantID] transaction in
            // Nothing would remove the key again if the tenant was deleted and purged meanwhile.
            try transaction.reading.requireLiveTenant(tenantID)
            if try !transaction.exists(Tables.hashSecrets, key) { try transaction.put(Tables.hashSecrets, key, record) }
        }
    }

    /// The account of a row, every field checked as for a user made by hand.
    func account(
        of row: ImportUser, settings: TenantSettings, limits: Limits, now: Timestamp
    ) throws(Failure) -> Account {
        try Values.checkUID(row.uid, limits: limits)
        try Values.checkDisplayName(row.displayName, limits: limits)
        try Values.checkPhotoURL(row.photoURL, limits: limits)
        try Values.checkPhoneNumber(row.phoneNumber)
        try Values.checkCustomClaims(row.customClaimsJSON, limits: limits)
        let email = row.email.isEmpty ? nil : try Values.email(row.email, form: settings.emailForm, limits: limits)
        var user = User(tenantID: settings.tenantID, uid: row.uid)
        user.email = email?.address ?? .empty
        user.emailVerified = row.emailVerified && email != nil
        user.displayName = row.displayName
        user.photoURL = row.photoURL
        user.phoneNumber = row.phoneNumber
        user.disabled = row.disabled
        user.customClaimsJSON = row.customClaimsJSON
        user.createdAtMicros = Timestamp.imported(row.createdAtMicros, now: now) ?? now.microseconds
        user.lastSignInAtMicros = Timestamp.imported(row.lastSignInAtMicros, now: now) ?? 0
        user.tokensValidAfterMicros = now.microseconds
        user.providers = try Self.checkedProviders(row.providers, form: settings.emailForm, limits: limits)
        var account = Account(user: user)
        if !row.emailTypedByUser { account.noteEmailSetByAdmin(over: nil) }
        account.signsInByCustomToken = row.customTokenSignIn
        if !row.passwordHash.isEmpty {
            account.passwordHash = try storedHash(of: row, settings: settings, limits: limits)
            account.passwordUpdatedAt =
                Timestamp.imported(row.passwordUpdatedAtMicros, now: now).map { Timestamp(microseconds: $0) } ?? now
        }
        account.signsInByEmailLink = row.emailLinkSignIn && email != nil
        account.deriveProviders()
        return account
    }

    private func storedHash(of row: ImportUser, settings: TenantSettings, limits: Limits) throws(Failure) -> Text {
        let field = "password_hash"
        let read: PasswordCredential?
        do throws(CryptoError) { read = try self.credential(of: row) } catch {
            throw Failure.invalid(.invalidPasswordHash, field: field, "is not a hash of the algorithm in the spec")
        }
        guard let credential = read else {
            throw Failure.invalid(.invalidPasswordHash, field: field, "needs the spec of its algorithm")
        }
        // No password would ever match it. Mostly the signer key is wrong, for example in base64.
        if let byteCount = schemes[row.hashSpec]?.hashByteCount, row.passwordHash.byteCount != byteCount {
            throw Failure.invalid(
                .invalidPasswordHash, field: field, "must be as long as the signer key, which has \(byteCount) bytes")
        }
        do throws(Failure) {
            try Self.checkCost(credential, settings: settings, limits: limits)
        } catch {
            refusedCount.add()
            throw error
        }
        return credential.stored
    }

    /// PASSWORD_HASH_TOO_COSTLY.
    static func checkCost(
        _ credential: PasswordCredential, settings: TenantSettings, limits: Limits
    ) throws(Failure) {
        let work = credential.work
        let isCostly = work.memoryByteCount > limits.importedHashMemoryMax || work.time > limits.importedHashTimeMax
        guard !isCostly || settings.allowsCostlyHashes else {
            throw Failure.invalid(
                .passwordHashTooCostly, field: "password_hash",
                "costs more to check than the server allows; a project-admin can set allow_costly_hashes")
        }
    }

    /// Nil without a spec.
    private func credential(of row: ImportUser) throws(CryptoError) -> PasswordCredential? {
        guard let scheme = schemes[row.hashSpec]?.scheme else { return nil }
        return try PasswordCredential(scheme, hash: row.passwordHash.withBytes { [UInt8]($0) }, salt: row.salt)
    }

    /// "password" and "phone" follow from the account itself and are left out, whatever the row says of them.
    private static func checkedProviders(
        _ providers: [ProviderInfo], form: Email.Form, limits: Limits
    ) throws(Failure) -> [ProviderInfo] {
        let federated = providers.enumerated().filter(\.element.isFederated)
        guard federated.count <= Values.providersPerUserMax else {
            throw .invalid(.invalidProvider, field: "providers", "must be at most \(Values.providersPerUserMax)")
        }
        var seen: Set<Text> = []
        for (place, provider) in federated {
            // A row has many identities, and older servers exported identities that are too long now.
            try Values.checkProvider(provider, field: "providers[\(place)]", form: form, limits: limits)
            guard seen.insert(provider.providerID).inserted else {
                throw .invalid(.invalidProvider, field: "providers", "names \(provider.providerID) twice")
            }
        }
        return federated.map(\.element)
    }
}

extension Timestamp {
    /// A time of an import's row, in microseconds; `now` for a time to come, nil if the row has none.
    static func imported(_ microseconds: Int64, now: Timestamp) -> Int64? {
        microseconds > 0 ? min(microseconds, now.microseconds) : nil
    }
}
