public import Base
public import Messages
public import Rules
public import Store

// How a way to sign in is written: a type in Methods/, whose file has its name, and which conforms to `SignInMethod`
// and to one protocol for each thing that it can be used for. docs/adding-a-sign-in-method.md goes through an example.

/// A way to prove who somebody is. The `SignInPipeline` does everything that is the same for all of them, in one order.
///
/// No requirement has a default: a method says of each step what it does there, also when that is nothing.
public protocol SignInMethod: Sendable {
    /// The request's credential in good form.
    associatedtype Credential: Sendable
    associatedtype Proof: SignInProof

    /// The tests' tables find the method by it. tools/generate makes one for each file in Methods/.
    static var name: SignInMethodName { get }

    /// Throws where the tenant has switched the method off.
    func checkOpen(_ settings: TenantSettings) throws(Failure)

    /// Checks the form of the request, the name of its device included (`SignInAttempt.device`).
    func read(_ attempt: SignInAttempt) throws -> SignInReading<Credential>

    /// What an attempt costs whoever makes it.
    func throttle(_ credential: Credential, _ attempt: SignInAttempt) throws -> SignInThrottle

    /// Proves the credential. Runs before any transaction, and again where the account changed meanwhile in a way that
    /// makes the proof old (`AccountMoved.proofIsOld`).
    func prove(_ credential: Credential, _ attempt: SignInAttempt) async throws -> Proof
}

/// What a method found out about an end user.
public protocol SignInProof: Sendable {
    /// How a session begins that the proof opens.
    var start: SessionStart { get }
}

/// A method that enters the account which its proof names, or makes that account.
public protocol EnteringMethod: SignInMethod {
    associatedtype Choice: AccountChoice

    /// Chooses the account, over what is committed. The pipeline asks before the transaction and again inside it; when
    /// the second choice is another one, it begins again. `known`: the chosen account, where it was read already.
    func choose(
        _ proof: Proof, known: Account?, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) throws -> Choice

    /// Decides what becomes of the account, and takes what the proof uses up (a code, an id). Nil: the account is made.
    func decide(
        _ proof: Proof, _ choice: Choice, on account: Account?, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect

    /// What the record of a refused sign-up keeps.
    func refusedEndUser(_ proof: Proof) -> RefusedEndUser
}

/// A method that always makes an account: a sign-up.
public protocol CreatingMethod: SignInMethod {
    /// The account to be made, with nothing in it but `account`'s uid and times so far.
    func decide(_ proof: Proof, making account: Account, now: Timestamp) -> Account

    /// What the record of a refused sign-up keeps; asked before the request was read.
    func refusedEndUser(_ limits: Limits) -> RefusedEndUser
}

/// A method that can be added to the account of a signed-in user.
public protocol LinkingMethod: SignInMethod {
    func decide(
        _ proof: Proof, linkingTo account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect
}

/// A method by which a signed-in user proves itself again.
public protocol ReauthenticatingMethod: SignInMethod {
    /// USER_MISMATCH unless the proof is this account's.
    func checkProof(
        _ proof: Proof, of account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws
}

/// Which account a sign-in enters. Two choices are equal when the same would be done.
public protocol AccountChoice: Sendable, Equatable {
    /// Nil for an account that is to be made, under a new uid.
    var uid: Text? { get }
}

/// The account of a uid that the proof names, whether or not it exists.
public struct NamedAccount: AccountChoice {
    public let uid: Text?
}

/// What a method read from the request. It cannot be made without the device, whose form `SignInAttempt.device` checks.
public struct SignInReading<Credential: Sendable>: Sendable {
    let credential: Credential
    let device: Origin.Device

    public init(_ credential: Credential, device: Origin.Device) {
        self.credential = credential
        self.device = device
    }
}

/// What a decision is made about: the account's key, and when, for whom and under which settings.
public struct SignInMoment: Sendable {
    public let key: UserKey
    public let settings: TenantSettings
    public let origin: Origin
    public let now: Timestamp
}

/// The way a session begins, as its tokens state it.
public struct SessionStart: Sendable {
    /// The claim `firebase.sign_in_provider`.
    public var provider: Text
    /// A JSON object that every ID token of the session carries.
    public var claims: [UInt8]

    public init(_ provider: Text, claims: [UInt8] = []) {
        self.provider = provider
        self.claims = claims
    }
}

/// What comes of a sign-in: the user, its tokens, and what the method proved.
public struct SignInOutcome<Proof: Sendable>: Sendable {
    public let user: User
    public let tokens: TokenPair
    /// Whether this sign-in created the account.
    public let isNewUser: Bool
    /// By which the device is known at its next sign-in.
    public let deviceToken: Text
    /// Nil for a request that was answered before.
    public let proof: Proof?
}
