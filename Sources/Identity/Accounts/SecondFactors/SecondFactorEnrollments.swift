public import Base
import Crypto
public import Messages
import Rules
import Store

/// Enrolls second factors, and withdraws them, for end users.
public struct SecondFactorEnrollments: Sendable {
    let resources: Resources
    let users: UserDirectory
    let tokenCheck: TokenCheck
    let codes: VerificationCodes
    let pendingSignIns: PendingSignIns
    let secrets: FactorSecrets
    let delivery: OobDelivery
    let mailer: Mailer
    let devices: DeviceTokens
    let keys: GuessKeys
    let repeatedChanges: RepeatedChanges
    /// The issuer that an authenticator app shows where the tenant has no name.
    let projectID: Text

    static let totpLifetime = Duration.minutes(10)

    public enum WantedFactor: Sendable {
        case phone(Text, locale: Text)
        case totp

        var kind: SecondFactorKind {
            switch self {
            case .phone: .phone
            case .totp: .totp
            }
        }
    }

    /// An enrolment that was begun.
    public enum Started: Sendable {
        case phone(SentVerificationCode)
        case totp(TotpSecret, sessionInfo: Secret, expiresAt: Timestamp)
    }

    /// Begins an enrolment. For the refusals see Accounts.StartMfaEnrollment.
    public func start(_ wanted: WantedFactor?, _ request: EndUserRequest) async throws -> Started {
        let address = try request.address()
        try SecondFactorRules.checkOpen(request.settings)
        if let wanted { try SecondFactorRules.checkAllowed(wanted.kind, settings: request.settings) }
        let user = try mayEnroll(request)
        let account = user.account
        switch wanted {
        case nil: throw Failure.invalid(.missingCredential, field: "factor", "is required")
        case .totp: return try await startTOTP(user, request)
        case .phone(let typed, let locale):
            let number = try PhoneNumber.read(typed)
            try Values.checkLocale(locale, limits: resources.limits)
            try SecondFactorRules.checkNew(number, for: account.user)
            var order = VerificationOrder(to: number, for: .secondFactorEnrollment(uid: account.user.uid))
            order.locale = locale
            order.address = address
            return .phone(try await codes.send(order, request))
        }
    }

    /// The user of the request, who may enroll one more factor.
    func mayEnroll(_ request: EndUserRequest) throws -> EnrollingUser {
        let now = resources.clock.now()
        let user = try resources.store.read { transaction in
            let user = try self.user(request.idToken, settings: request.settings, in: transaction)
            if case .token(let signedIn) = user.proof {
                _ = try transaction.changingFactors(signedIn.token, settings: request.settings, now: now)
            }
            return user
        }
        try SecondFactorRules.checkRoom(user.account.user)
        return user
    }

    private func startTOTP(_ user: EnrollingUser, _ request: EndUserRequest) async throws -> Started {
        let (now, key) = (resources.clock.now(), user.account.key)
        let secret = Secret(resources.random.bytes(TOTP.secretByteCount))
        let sessionInfo = Secret(Base64.url.encode(resources.random.bytes(32)))
        let expiresAt = now + Self.totpLifetime
        let enrollment = StoredTotpEnrollment(
            sessionHash: sessionInfo.withBytes { Digest.sha256($0) },
            sealedSecret: try secrets.seal(secret, of: key), expiresAtMicros: expiresAt.microseconds)
        try await users.session(key).write { transaction in
            try transaction.refusingRepeat(of: request.origin, now: now) {
                // It takes the place of an enrolment that the user has begun.
                try user.requireStillProved(settings: request.settings, now: now, in: transaction.reading)
                var stored = try transaction.get(Tables.secondFactors, key) ?? StoredSecondFactors()
                stored.enrollment = enrollment
                try transaction.put(Tables.secondFactors, key, stored)
            }
        }
        let name = request.settings.tenant.displayName
        let totp = TotpSecret(
            sharedSecret: Secret(secret.withBytes { Base32.encode($0) }),
            uri: TOTP.uri(
                secret: secret, issuer: name.isEmpty ? projectID : name, account: user.account.user.email),
            // Proof: both are constants, 6 and 30.
            codeLength: Int32(TOTP.digitCount), periodSeconds: Int32(TOTP.periodSeconds), algorithm: "SHA1")
        return .totp(totp, sessionInfo: sessionInfo, expiresAt: expiresAt)
    }

    // MARK: Withdrawing, recovery codes

    /// Removes a factor. For the refusals see Accounts.WithdrawMfaEnrollment.
    public func withdraw(_ factorID: Text, _ request: EndUserRequest) async throws -> SignedIn {
        if let again = try await repeatedChanges.answer(to: request) { return again }
        let (now, settings) = (resources.clock.now(), request.settings)
        let user = try tokenCheck.verifiedUser(request.idToken, settings: settings, store: resources.store)
        return try await users.session(user.account.key).change(by: user.token, request) { transaction, current in
            _ = try transaction.reading.changingFactors(user.token, settings: settings, now: now)
            let factor = try current.user.secondFactor(factorID)
            var changed = current
            try transaction.removeFactor(factorID, from: &changed)
            return AccountEffect(
                changed, kind: .secondFactorRemoved, detail: factor.eventDetail, endsSessions: .signedOut)
        }
    }

    /// Replaces all recovery codes by new ones. For the refusals see Accounts.RenewRecoveryCodes.
    public func renewRecoveryCodes(_ request: EndUserRequest) async throws -> [Secret] {
        let (now, settings) = (resources.clock.now(), request.settings)
        let user = try tokenCheck.verifiedUser(request.idToken, settings: settings, store: resources.store)
        let key = user.account.key
        let made = secrets.makeRecoveryCodes(of: key)
        try await users.session(key).write { transaction in
            try transaction.refusingRepeat(of: request.origin, now: now) {
                let (current, session) = try transaction.reading.changingFactors(
                    user.token, settings: settings, now: now)
                guard !current.user.secondFactors.isEmpty else { throw Failure.factorNotFound }
                var stored = try transaction.get(Tables.secondFactors, key) ?? StoredSecondFactors()
                stored.setRecoveryCodes(made.tags, madeAfter: session.factorsShown)
                try transaction.put(Tables.secondFactors, key, stored)
                var changed = current
                changed.user.recoveryCodeCount = Int32(clamping: made.codes.count)
                try transaction.replace(
                    current, by: changed, origin: request.origin, kind: .recoveryCodesRenewed, now: now)
            }
        }
        return made.codes
    }
}
