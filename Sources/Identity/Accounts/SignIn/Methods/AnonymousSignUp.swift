public import Base
import Messages
public import Rules

/// Signing up without a way to sign in again. Refusals: ADMIN_ONLY_OPERATION, ADMIN_RESTRICTED_OPERATION,
/// INVALID_DISPLAY_NAME, QUOTA_EXCEEDED.
public struct AnonymousSignUp: AccountCreatingMethod {
    public static let name = SignInMethodName.anonymousSignUp
    public static let methodSwitch = MethodSwitch.anonymous

    public init() {}

    public struct Credential: Sendable {}

    /// Nothing is proved.
    public struct Proof: SignInProof {
        public var start: SessionStart { SessionStart("anonymous") }
    }

    public func checkOpen(_ settings: TenantSettings) throws(Failure) {
        guard settings.allows(Self.methodSwitch) else { throw .anonymousNotAllowed }
        // An anonymous user could never show a second factor.
        guard settings.secondFactorState != .mandatory else { throw .anonymousWithoutFactor }
    }

    public func read(_ attempt: SignInAttempt) throws -> SignInReading<Credential> {
        SignInReading(Credential(), device: try attempt.device())
    }

    public func throttle(_ credential: Credential, _ attempt: SignInAttempt) -> SignInThrottle { .anonymousSignUp }

    public func prove(_ credential: Credential, _ attempt: SignInAttempt) async -> Proof { Proof() }

    public func unprovedEmail(in proof: Proof, _ attempt: SignInAttempt) -> Email? { nil }

    public func refused(
        _ failure: Failure, after proof: Proof, of credential: Credential, _ attempt: SignInAttempt
    ) -> Failure { failure }

    public func decide(_ proof: Proof, making account: Account, now: Timestamp) -> Account { account }

    public func refusedEndUser(_ limits: Limits) -> RefusedEndUser { RefusedEndUser() }
}
