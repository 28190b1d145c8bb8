public import Base
import Messages
public import Rules
public import Store
import Tokens

/// Signing in a user whom a back end names in a token that it signed; a new user has the uid and nothing else.
///
/// Refusals: those of `CustomTokens.verify`, INVALID_DISPLAY_NAME, INVALID_CUSTOM_TOKEN (used before), USER_DISABLED.
public struct CustomTokenSignIn: AccountChoosingMethod, ReauthenticatingMethod {
    public static let name = SignInMethodName.customTokenSignIn
    public static let methodSwitch = MethodSwitch.always

    private let token: Secret
    private let customTokens: CustomTokens

    public init(token: Secret, customTokens: CustomTokens) {
        self.token = token
        self.customTokens = customTokens
    }

    /// Whether the token is tried with each of its signer's keys. That may take as long as a page of a list: a forged
    /// token is tried with all of them.
    public static func triesKeys(_ token: Secret) -> Bool { token.withBytes { JWT.namesNoKey($0) } }

    /// There is no switch: an admin gives or takes the service account that may sign custom tokens.
    public func checkOpen(_ settings: TenantSettings) {}

    /// Verifies the token here already, because that waits for nothing.
    public func read(_ attempt: SignInAttempt) throws -> SignInReading<VerifiedCustomToken> {
        let verified = try customTokens.verify(token, settings: attempt.settings, now: attempt.startedAt)
        return SignInReading(verified, device: try attempt.device())
    }

    public func throttle(_ credential: VerifiedCustomToken, _ attempt: SignInAttempt) -> SignInThrottle { .unguessable }

    public func prove(_ credential: VerifiedCustomToken, _ attempt: SignInAttempt) async -> VerifiedCustomToken {
        credential
    }

    public func unprovedEmail(in proof: VerifiedCustomToken, _ attempt: SignInAttempt) -> Email? { nil }

    public func refused(
        _ failure: Failure, after proof: VerifiedCustomToken, of credential: VerifiedCustomToken,
        _ attempt: SignInAttempt
    ) -> Failure { failure }

    public func choose(
        _ proof: VerifiedCustomToken, known: Account?, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) -> NamedAccount { NamedAccount(uid: proof.uid) }

    public func effect(
        _ proof: VerifiedCustomToken, _ choice: NamedAccount, on account: Account?, _ moment: SignInMoment
    ) -> AccountEffect {
        var account = account ?? moment.newAccount
        account.noteCustomToken()
        return AccountEffect(account)
    }

    public func decide(
        _ proof: VerifiedCustomToken, _ choice: NamedAccount, on account: Account?, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect {
        try transaction.useTokenID(of: proof, tenantID: moment.key.tenant, now: moment.now)
        return effect(proof, choice, on: account, moment)
    }

    public func refusedEndUser(_ proof: VerifiedCustomToken) -> RefusedEndUser { RefusedEndUser(uid: proof.uid) }

    public func checkProof(
        _ proof: VerifiedCustomToken, of account: Account, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> Account {
        guard proof.uid == account.user.uid else { throw Failure.userMismatch }
        try transaction.useTokenID(of: proof, tenantID: moment.key.tenant, now: moment.now)
        var account = account
        account.noteCustomToken()
        return account
    }
}

extension VerifiedCustomToken: SignInProof {
    public var start: SessionStart {
        var start = SessionStart(SessionStart.customToken, claims: claims)
        start.signer = signer
        return start
    }
}
