public import Base
import Crypto
public import Messages
import Rules
public import Store

/// The credentials of pending sign-ins: `id ‖ HMAC-SHA256`, base64url.
///
/// The id is random, and the store's key for a pending sign-in. A reader of the store cannot make a credential from the
/// id, and a repeated request can be given the same credential again.
struct PendingSignIns: Sendable {
    static let idByteCount = 32
    static let textByteCount = ((idByteCount + HMACKey.tagByteCount) * 8 + 5) / 6

    private let key: HMACKey

    let counts = SecondFactorCounts()

    init(masterKey: MasterKey) { self.key = masterKey.hmac("pending sign-in") }

    /// The failure that hands the credential out.
    func failure(for pending: SignInPending) -> Failure {
        counts.asked.add()
        let credential = String(
            decoding: Base64.url.encode(pending.id + tag(pending.id, pending.user.tenantID)), as: UTF8.self)
        if pending.kind == .enrollment {
            return Failure(
                .secondFactorEnrollmentRequired,
                "This tenant lets nobody in without a second factor; enroll one with the enrollment credential.",
                metadata: [Failure.Entry("enrollment_credential", credential)])
        }
        return Failure(
            .secondFactorRequired, "The user has a second factor; finish the sign-in with it.",
            metadata: [
                Failure.Entry("pending_credential", credential),
                Failure.Entry(
                    "second_factors",
                    SecondFactorRules.hints(
                        SecondFactorRules.offered(to: pending.user, after: pending.provider)
                    ).string),
            ])
    }

    /// The id in a credential of this tenant; nil for a string that is not one.
    func id(in credential: UnsafeRawBufferPointer, tenantID: Text) -> [UInt8]? {
        guard credential.count == Self.textByteCount, let bytes = Base64.url.decode(credential),
            bytes.count == Self.idByteCount + HMACKey.tagByteCount
        else { return nil }
        let id = Array(bytes.prefix(Self.idByteCount))
        return constantTimeEqual(tag(id, tenantID), Array(bytes.dropFirst(Self.idByteCount))) ? id : nil
    }

    private func tag(_ id: [UInt8], _ tenantID: Text) -> [UInt8] { key.tag(of: id + tenantID.bytes) }
}

extension ReadTransaction {
    /// A pending sign-in and its account. INVALID_MFA_PENDING_CREDENTIAL when it is used, expired, of another kind or
    /// out of a restored backup, when the account's sessions were ended since, when it waits for an enrolment that is
    /// done, when the account has lost the identity that the sign-in began with, when the signer of its custom token
    /// may not sign any more, or when the provider was changed since; USER_DISABLED; TENANT_SUSPENDED;
    /// PROJECT_DISABLED; OPERATION_NOT_ALLOWED when the method or the provider is not enabled any more; TOKEN_EXPIRED
    /// when the session of a reauthentication is over.
    func pendingSignIn(
        _ id: [UInt8], _ kind: PendingSignInKind, tenantID: Text, now: Timestamp
    ) throws -> (pending: StoredPendingSignIn, account: Account) {
        guard let pending = try get(Tables.pendingSignIns, TenantHashKey(tenantID, id)), pending.kind == kind,
            pending.isGood(at: now), let account = try account(UserKey(tenantID, pending.uid)),
            // The sign-in may have been finished since the backup.
            try !isFromBackup(madeAt: Timestamp(microseconds: pending.createdAtMicros))
        else { throw Failure.invalidPendingSignIn }
        if account.user.disabled { throw Failure.userDisabled }
        // A user who has a factor by now has to show it: the enrollment credential is over.
        guard account.user.tokensValidAfterMicros == pending.tokensValidAfterMicros,
            kind == .factor || account.user.secondFactors.isEmpty, pending.hasIdentity(of: account)
        else { throw Failure.invalidPendingSignIn }
        try requireStillOpen(pending, tenantID: tenantID, now: now)
        if let signer = pending.signer, try !maySign(signer, tenantID: tenantID, now: now) {
            throw Failure.invalidPendingSignIn
        }
        let updatedAtMicros = try providerUpdatedAtMicros(pending.signInProvider, tenantID: tenantID)
        // A provider of another issuer, or one that is trusted less, might not prove this identity any more. Older
        // servers noted no time.
        guard [0, updatedAtMicros].contains(pending.providerUpdatedAtMicros) else { throw Failure.invalidPendingSignIn }
        return (pending, account)
    }

    /// Requires that the tenant is open to its end users and still allows the method, and that the session of a
    /// reauthentication still lives.
    private func requireStillOpen(_ pending: StoredPendingSignIn, tenantID: Text, now: Timestamp) throws {
        let settings = TenantSettings(try liveTenant(tenantID))
        try settings.requireOpenToEndUsers()
        // Not bytes: the switches' names are ASCII, and only this server writes them.
        guard let methodSwitch = MethodSwitch(rawValue: pending.methodSwitch.string) else {
            throw Failure.switchedOff(.always)
        }
        try settings.requireAllowed(methodSwitch)
        guard !pending.sessionID.isEmpty else { return }
        guard let session = try storedSession(pending.sessionID, of: UserKey(tenantID, pending.uid)) else {
            throw Failure.invalidPendingSignIn
        }
        if let cause = session.refusedCause(settings: settings, now: now) {
            throw Failure.tokenExpired(cause: cause)
        }
    }

    /// When the provider of a sign-in was last changed; 0 for a sign-in without a provider. OPERATION_NOT_ALLOWED.
    func providerUpdatedAtMicros(_ signInProvider: Text, tenantID: Text) throws -> Int64 {
        guard KnownProvider.isID(signInProvider) else { return 0 }
        return try enabledProvider(signInProvider, tenantID: tenantID).updatedAtMicros
    }
}

extension WriteTransaction {
    func putPendingSignIn(_ pending: StoredPendingSignIn, id: [UInt8], tenantID: Text) throws {
        let key = TenantHashKey(tenantID, id)
        try put(Tables.pendingSignIns, key, pending)
        try scheduleExpiry(at: Timestamp(microseconds: pending.expiresAtMicros), Tables.pendingSignIns, key)
    }

    func removePendingSignIn(_ id: [UInt8], _ pending: StoredPendingSignIn, tenantID: Text) throws {
        let key = TenantHashKey(tenantID, id)
        try delete(Tables.pendingSignIns, key)
        try cancelExpiry(at: Timestamp(microseconds: pending.expiresAtMicros), Tables.pendingSignIns, key)
    }
}

extension StoredPendingSignIn: ExpiringRecord {
    /// A user who is asked for a code has it at hand; a user who is to enroll a factor may have to verify an email
    /// first.
    static func lifetime(_ kind: PendingSignInKind) -> Duration {
        kind == .enrollment ? .minutes(30) : .minutes(5)
    }

    /// A sign-in begun in the future is not good: a clock was wrong, and the sign-in would live until that time.
    fileprivate func isGood(at now: Timestamp) -> Bool {
        now < Timestamp(microseconds: expiresAtMicros)
            && Timestamp(microseconds: createdAtMicros) - now <= TimeKeeping.slack
    }

    /// The signer of the custom token that the sign-in began with. Nil: it began with no custom token, or an older
    /// server wrote the row.
    var signer: CustomTokenSigner? {
        get {
            guard !serviceAccountID.isEmpty else { return nil }
            return CustomTokenSigner(accountID: serviceAccountID, keyID: serviceAccountKeyID)
        }
        set {
            serviceAccountID = newValue?.accountID ?? .empty
            serviceAccountKeyID = newValue?.keyID ?? .empty
        }
    }

    /// Whether the account still has the identity that the sign-in began with.
    fileprivate func hasIdentity(of account: Account) -> Bool {
        rawID.isEmpty || account.identity(of: signInProvider) == rawID
    }

    public static func expire(
        _ key: TenantHashKey, of table: Table<TenantHashKey, Self>, in transaction: borrowing WriteTransaction,
        now _: Timestamp
    ) throws {
        try transaction.delete(table, key)
    }
}

extension Account {
    /// The identity by which the user signs in with a provider: a provider's id of the user, the phone number, or for
    /// "password" the email. Empty where there is none: a custom token names the uid.
    func identity(of providerID: Text) -> Text {
        user.providers.first { $0.providerID == providerID }?.rawID ?? .empty
    }
}

extension Failure {
    static let invalidPendingSignIn = Failure(
        .invalidMFAPendingCredential,
        "The sign-in is over: used, too old, ended by wrong codes, or what it began with was changed; sign in again.")
}
