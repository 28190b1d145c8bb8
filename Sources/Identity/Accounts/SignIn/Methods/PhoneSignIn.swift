public import Base
import Messages
public import Rules
public import Store

/// Signing in, or up, with the code that was sent to a phone number, or with the temporary proof that such a code
/// brought.
///
/// Refusals: OPERATION_NOT_ALLOWED, MISSING_SESSION_INFO, MISSING_VERIFICATION_CODE, MISSING_PHONE_NUMBER,
/// INVALID_PHONE_NUMBER, INVALID_DISPLAY_NAME, to link CREDENTIAL_TOO_OLD_LOGIN_AGAIN, then those of
/// `VerificationCodes.judge` and `TemporaryProofs.proved`.
public struct PhoneSignIn: AccountChoosingMethod, LinkingMethod, ReauthenticatingMethod {
    public static let name = SignInMethodName.phoneSignIn
    public static let methodSwitch = MethodSwitch.phone

    /// The credential of the end user, as the request has it.
    public enum Shown: Sendable {
        case code(Secret, sessionInfo: Secret)
        case temporaryProof(Secret, phoneNumber: Text)
    }

    private let shown: Shown
    private let codes: VerificationCodes
    /// Whether the number may replace the account's present one.
    private let changesNumber: Bool

    public init(_ shown: Shown, codes: VerificationCodes, changesNumber: Bool = false) {
        self.shown = shown
        self.codes = codes
        self.changesNumber = changesNumber
    }

    /// A number that the end user has. The code or temporary proof is used up in the transaction of the change that it
    /// allows.
    public struct Proof: SignInProof {
        fileprivate let proved: ProvedNumber

        public var start: SessionStart { SessionStart(ProviderInfo.phone) }
    }

    /// The credential of the end user, with its form checked.
    public enum Credential: Sendable {
        case code(Secret, sessionInfo: Secret)
        case temporaryProof(Secret, PhoneNumber)
    }

    public func checkOpen(_ settings: TenantSettings) throws(Failure) {
        try settings.requireAllowed(Self.methodSwitch)
    }

    public func read(_ attempt: SignInAttempt) throws -> SignInReading<Credential> {
        switch shown {
        case .code(let code, let sessionInfo):
            try VerificationCodes.checkForm(sessionInfo, code)
            return SignInReading(.code(code, sessionInfo: sessionInfo), device: try attempt.device())
        case .temporaryProof(let proof, let typed):
            let number = try PhoneNumber.read(typed)
            return SignInReading(.temporaryProof(proof, number), device: try attempt.device())
        }
    }

    /// Each code counts its own wrong tries.
    public func throttle(_ credential: Credential, _ attempt: SignInAttempt) -> SignInThrottle { .countedByTheCode }

    public func prove(_ credential: Credential, _ attempt: SignInAttempt) async throws -> Proof {
        switch credential {
        case .code(let code, let sessionInfo):
            var uses = [VerificationUse.signIn]
            if let user = attempt.user { uses.append(.link(uid: user.account.user.uid)) }
            return Proof(proved: try await codes.judge(sessionInfo, code, for: uses, attempt.request))
        case .temporaryProof(let proof, let number):
            return Proof(
                proved: try codes.proofs.proved(
                    proof, number, tenantID: attempt.tenantID, now: attempt.resources.clock.now()))
        }
    }

    public func unprovedEmail(in proof: Proof, _ attempt: SignInAttempt) -> Email? { nil }

    public func refused(
        _ failure: Failure, after proof: Proof, of credential: Credential, _ attempt: SignInAttempt
    ) -> Failure { failure }

    public func choose(
        _ proof: Proof, known: Account?, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) throws -> NamedAccount {
        NamedAccount(uid: try transaction.uid(ofPhone: proof.proved.number, tenantID: settings.tenantID))
    }

    public func effect(
        _ proof: Proof, _ choice: NamedAccount, on account: Account?, _ moment: SignInMoment
    ) -> AccountEffect {
        if let account { return AccountEffect(account) }
        var made = moment.newAccount
        made.setPhoneNumber(proof.proved.number)
        return AccountEffect(made)
    }

    public func decide(
        _ proof: Proof, _ choice: NamedAccount, on account: Account?, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect {
        try transaction.use(proof.proved, tenantID: moment.key.tenant, now: moment.now)
        return effect(proof, choice, on: account, moment)
    }

    public func refusedEndUser(_ proof: Proof) -> RefusedEndUser {
        RefusedEndUser(phoneNumber: proof.proved.number.text)
    }

    public func decide(
        _ proof: Proof, linkingTo account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect {
        let number = proof.proved.number
        if let owner = try transaction.reading.uid(ofPhone: number, tenantID: moment.key.tenant),
            owner != account.user.uid
        {
            throw Failure.credentialInUse(detail: .phoneNumberExists)
                .with("phone_number", number.text.string)
                .with(
                    "temporary_proof",
                    try codes.proofs.token(for: proof.proved, tenantID: moment.key.tenant, now: moment.now).string)
        }
        let present = account.user.phoneNumber
        guard present.isEmpty || changesNumber && present != number.text else {
            throw Failure.providerAlreadyLinked(ProviderInfo.phone)
        }
        try transaction.use(proof.proved, tenantID: moment.key.tenant, now: moment.now)
        var changed = account
        changed.setPhoneNumber(number)
        if present.isEmpty { return AccountEffect(changed, kind: .providerLinked, detail: ProviderInfo.phone) }
        // The holder of the old number could have signed in with it.
        return AccountEffect(changed, kind: .phoneNumberChanged, endsSessions: .signedOut)
    }

    public func checkProof(
        _ proof: Proof, of account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws -> Account {
        guard account.user.phoneNumber == proof.proved.number.text else { throw Failure.userMismatch }
        try transaction.use(proof.proved, tenantID: moment.key.tenant, now: moment.now)
        return account
    }
}

extension Account {
    fileprivate mutating func setPhoneNumber(_ number: PhoneNumber) {
        user.phoneNumber = number.text
        deriveProviders()
    }
}
