import Base
import Identity
import Messages
import Rules
import Store

/// A custom token that was verified before its call began.
struct VerifiedBefore: AccountChoosingMethod {
    static let name = SignInMethodName.customTokenSignIn
    static let methodSwitch = MethodSwitch.always
    let token: VerifiedCustomToken
    let method: CustomTokenSignIn
    func checkOpen(_ settings: TenantSettings) {}
    func read(_ attempt: SignInAttempt) throws -> SignInReading<VerifiedCustomToken> {
        SignInReading(token, device: try attempt.device())
    }
    func throttle(_ credential: VerifiedCustomToken, _ attempt: SignInAttempt) -> SignInThrottle { .unguessable }
    func prove(_ credential: VerifiedCustomToken, _ attempt: SignInAttempt) async -> VerifiedCustomToken { token }
    func unprovedEmail(in proof: VerifiedCustomToken, _ attempt: SignInAttempt) -> Email? { nil }
    func refused(
        _ failure: Failure, after proof: VerifiedCustomToken, of credential: VerifiedCustomToken,
        _ attempt: SignInAttempt
    ) -> Failure { failure }
    func refusedEndUser(_ proof: VerifiedCustomToken) -> RefusedEndUser { RefusedEndUser() }
    func choose(
        _ proof: VerifiedCustomToken, known: Account?, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) -> NamedAccount { method.choose(proof, known: known, settings: settings, now: now, in: transaction) }
    func effect(
        _ proof: VerifiedCustomToken, _ choice: NamedAccount, on account: Account?, _ moment: SignInMoment
    ) throws -> AccountEffect { method.effect(proof, choice, on: account, moment) }
    func decide(
        _ proof: VerifiedCustomToken, _ choice: NamedAccount, on account: Account?, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect { try method.decide(proof, choice, on: account, moment, in: transaction) }
}
