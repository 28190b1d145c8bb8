public import Base
import Crypto
public import Messages
import Rules
public import Store

/// Makes the exporters.
public struct UserExports: Sendable {
    let resources: Resources
    let passwords: PasswordService
    let secrets: FactorSecrets

    /// Begins an export. An export with secrets appends an event before the first secret is sent. TENANT_NOT_FOUND.
    public func begin(tenantID: Text, includesSecrets: Bool, origin: Origin) async throws -> UserExporter {
        let now = resources.clock.now()
        if includesSecrets {
            try await resources.store.write(for: .session) { transaction in
                try transaction.reading.requireLiveTenant(tenantID)
                try transaction.appendEvent(.passwordHashesExported, tenantID: tenantID, origin: origin, now: now)
            }
        }
        return UserExporter(exports: self, tenantID: tenantID, includesSecrets: includesSecrets)
    }
}

/// One export: the users of a tenant as `ImportUser`s, some in each slice.
///
/// Each slice has a read transaction of its own, so that a slow reader holds no old snapshot.
public struct UserExporter: Sendable {
    let exports: UserExports
    let tenantID: Text
    let includesSecrets: Bool
    /// The hashes of the names of specs that were told. Names would take several times the memory, and a stream may
    /// live for long.
    private var toldSpecs: Set<Int> = []

    init(exports: UserExports, tenantID: Text, includesSecrets: Bool) {
        self.exports = exports
        self.tenantID = tenantID
        self.includesSecrets = includesSecrets
    }

    /// Some users after `last`.
    public struct Slice: Sendable {
        public var users: [ImportUser] = []
        /// The specs of their hashes that no earlier slice had. After `importHashSpecsMax` specs, earlier ones are told
        /// again.
        public var hashSpecs: [NamedHashSpec] = []
        /// Where the next slice begins; nil when there is none.
        public var last: Text?
    }

    public mutating func next(after last: Text?, bounds: PageBounds) throws -> Slice {
        let (accounts, factors, end) = try exports.resources.store.read { transaction in
            let found = try transaction.page(
                of: Tables.users, prefix: TenantPrefix(tenantID),
                from: last.map { .after(UserKey(tenantID, $0)) } ?? .first, bounds: bounds
            ) { .item($0.value) }
            let accounts = try found.items.map { try Account(transaction.record(Tables.users, $0)) }
            let factors = try accounts.map { account in
                includesSecrets && account.user.secondFactors.contains { $0.kind == .totp }
                    ? try transaction.get(Tables.secondFactors, account.key) : nil
            }
            return (accounts, factors, found.last?.uid)
        }
        var slice = Slice(last: end)
        for (account, stored) in zip(accounts, factors) {
            var row = ImportUser(account)
            row.secondFactors = try secondFactors(of: account, stored)
            if includesSecrets, account.hasPassword { try add(account.passwordHash, to: &row, of: &slice) }
            slice.users.append(row)
        }
        return slice
    }

    /// Leaves out an authenticator app without its secret, because it is of no use.
    private func secondFactors(
        of account: Account, _ stored: StoredSecondFactors?
    ) throws -> [ImportSecondFactor] {
        try account.user.secondFactors.compactMap { factor in
            guard factor.kind == .totp else { return ImportSecondFactor(factor: factor) }
            guard let totp = stored?.totps.first(where: { $0.factorID == factor.factorID }) else { return nil }
            let secret = try exports.secrets.open(totp.sealedSecret, of: account.key)
            return ImportSecondFactor(factor: factor, totpSecret: secret)
        }
    }

    private mutating func add(_ stored: Text, to row: inout ImportUser, of slice: inout Slice) throws {
        guard let credential = try? PasswordCredential(stored: stored) else {
            throw Failure(.corruptPasswordHash, "The stored password hash of a user cannot be read.")
        }
        let parts = credential.parts
        row.passwordHash = Secret(parts.hash)
        row.salt = parts.salt
        row.hashSpec = parts.scheme.specName(credential.kind)
        let name = row.hashSpec.hashValue
        guard !toldSpecs.contains(name) else { return }
        // The set is bounded: a tenant may have a spec for each user. No import takes more specs than this.
        if toldSpecs.count >= exports.resources.limits.administration.importHashSpecsMax { toldSpecs.removeAll() }
        toldSpecs.insert(name)
        let spec = try parts.scheme.spec { try exports.passwords.signerKey($0, tenantID: tenantID) }
        slice.hashSpecs.append(NamedHashSpec(name: row.hashSpec, spec: spec))
    }
}

extension PasswordScheme {
    /// The name of the spec; it is the same for all hashes of one spec, in every export.
    fileprivate func specName(_ kind: PasswordCredential.Kind) -> Text {
        let parameters: String
        switch self {
        case .text(let kind): return Text(kind.rawValue)
        case .argon2(_, let version, let memoryKiB, let passes, let lanes, let data):
            parameters = "\(version),\(memoryKiB),\(passes),\(lanes),\(Hex.encode(data))"
        case .firebaseScrypt(let saltSeparator, let rounds, let memoryCost, let signerKeyID):
            parameters = "\(rounds),\(memoryCost),\(signerKeyID),\(Hex.encode(saltSeparator))"
        case .digest(_, let rounds, let order, let hashesHex): parameters = "\(rounds),\(order),\(hashesHex)"
        case .hmac(_, let order, let signerKeyID): parameters = "\(order),\(signerKeyID)"
        case .pbkdf2(_, let rounds): parameters = "\(rounds)"
        case .scrypt(let costExponent, let blockSize, let lanes): parameters = "\(costExponent),\(blockSize),\(lanes)"
        }
        let digest = Digest.sha256([UInt8](parameters.utf8)).prefix(9)
        return Text(unchecked: [UInt8]("\(kind.rawValue)-".utf8) + Base64.url.encode(digest))
    }
}

extension ImportUser {
    /// All fields of an account that are not secret.
    fileprivate init(_ account: Account) {
        let user = account.user
        self.init(
            uid: user.uid, email: user.email, emailVerified: user.emailVerified, displayName: user.displayName,
            photoURL: user.photoURL, phoneNumber: user.phoneNumber, disabled: user.disabled,
            customClaimsJSON: user.customClaimsJSON, createdAtMicros: user.createdAtMicros,
            lastSignInAtMicros: user.lastSignInAtMicros, providers: user.providers,
            emailLinkSignIn: account.signsInByEmailLink,
            passwordUpdatedAtMicros: account.passwordUpdatedAt.microseconds,
            customTokenSignIn: account.signsInByCustomToken, emailTypedByUser: account.hasTypedEmail)
    }
}
