public import Base
public import Messages
public import Rules
public import Store

// A way to sign in is written as a type in Methods/, in a file of the type's name. The type conforms to `SignInMethod`
// and to one protocol for each use of the method. docs/adding-a-sign-in-method.md goes through an example.

/// A way in which an end user proves an identity. The `SignInPipeline` does everything that is the same for all
/// methods, in one order.
///
/// No requirement has a default: a method says what it does in each step, even if that is nothing.
public protocol SignInMethod: Sendable {
    /// The request's credential, with its form checked.
    associatedtype Credential: Sendable
    associatedtype Proof: SignInProof

    /// The tests' tables find the method by it. tools/generate makes one for each file in Methods/.
    static var name: SignInMethodName { get }

    /// The tenant's switch for the method. `checkOpen` asks it, and a sign-in that waited for a second factor asks it
    /// again when it is finished.
    static var methodSwitch: MethodSwitch { get }

    /// Throws where the tenant has switched the method off. Called with the call's settings before anything is looked
    /// up, and with the tenant's present settings inside the transaction: an admin may have switched the method off
    /// while a hash, a provider or a hook was waited for.
    func checkOpen(_ settings: TenantSettings) throws(Failure)

    /// Checks the form of the request, the name of its device included (`SignInAttempt.device`).
    func read(_ attempt: SignInAttempt) throws -> SignInReading<Credential>

    /// The throttle that the attempt is counted by.
    func throttle(_ credential: Credential, _ attempt: SignInAttempt) throws -> SignInThrottle

    /// Proves the credential. Runs before any transaction, and again where the account changed meanwhile in a way that
    /// makes the proof old (`AccountMoved.proofIsOld`).
    func prove(_ credential: Credential, _ attempt: SignInAttempt) async throws -> Proof

    /// The email of which the answer tells whether it has an account, though the proof does not show that the user owns
    /// it. Nil if there is no such email, or if `throttle` charges the question already.
    func unprovedEmail(in proof: Proof, _ attempt: SignInAttempt) throws -> Email?

    /// The failure for an end user who was proved, and whom the throttle then refused because of `unprovedEmail`. If
    /// the credential counts only once, the failure says by what the end user can come back.
    func refused(
        _ failure: Failure, after proof: Proof, of credential: Credential, _ attempt: SignInAttempt
    ) throws -> Failure
}

/// The result of proving an end user by a method.
public protocol SignInProof: Sendable {
    /// The start of a session that begins with this proof.
    var start: SessionStart { get }
}

/// A method that chooses the account by its proof. The end user is signed in to that account, which is made if there is
/// none.
public protocol AccountChoosingMethod: SignInMethod {
    associatedtype Choice: AccountChoice

    /// Chooses the account by the committed records. The pipeline asks before the transaction and again inside it; if
    /// the second choice differs, the pipeline begins again. `known`: the chosen account, where it was read already.
    func choose(
        _ proof: Proof, known: Account?, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) throws -> Choice

    /// The effect on the account, as far as it follows from the proof and the account. `decide` begins with it, and the
    /// tenant's hooks are told of the user whom it leaves. Writes nothing. `account` is nil when it is to be made.
    func effect(
        _ proof: Proof, _ choice: Choice, on account: Account?, _ moment: SignInMoment
    ) throws -> AccountEffect

    /// Decides the effect on the account, and uses up the code or the id behind the proof. `account` is nil when it is
    /// to be made.
    func decide(
        _ proof: Proof, _ choice: Choice, on account: Account?, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect

    /// The end user in the record of a refused sign-up.
    func refusedEndUser(_ proof: Proof) -> RefusedEndUser
}

/// A method that always makes an account: a sign-up.
public protocol AccountCreatingMethod: SignInMethod {
    /// The account to be made; `account` has only the uid and the times so far.
    func decide(_ proof: Proof, making account: Account, now: Timestamp) -> Account

    /// The end user in the record of a refused sign-up; called before the request was read.
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
    /// Returns the account as it is after the proof; most methods change nothing. USER_MISMATCH unless the proof is
    /// this account's.
    func checkProof(
        _ proof: Proof, of account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws -> Account
}

/// The choice of the account that an end user is signed in to. Two choices are equal when the sign-in would do the
/// same.
public protocol AccountChoice: Sendable, Equatable {
    /// Nil for an account that is to be made, under a new uid.
    var uid: Text? { get }
}

/// The account of a uid that the proof names, whether or not it exists.
public struct NamedAccount: AccountChoice {
    public let uid: Text?
}

/// The values that a method read from the request. A reading cannot be made without the device, whose form
/// `SignInAttempt.device` checks.
public struct SignInReading<Credential: Sendable>: Sendable {
    let credential: Credential
    let device: Origin.Device

    public init(_ credential: Credential, device: Origin.Device) {
        self.credential = credential
        self.device = device
    }
}

/// The circumstances of a decision: the account's key, the tenant's settings, the request's origin and the time.
public struct SignInMoment: Sendable {
    public let key: UserKey
    public let settings: TenantSettings
    public let origin: Origin
    public let now: Timestamp

    /// The account of a new user, empty yet.
    var newAccount: Account { .new(tenantID: key.tenant, uid: key.uid, now: now) }
}

/// The way a session begins, as its tokens state it.
public struct SessionStart: Sendable {
    /// The provider of a session that a custom token began.
    static let customToken: Text = "custom"

    /// The claim `firebase.sign_in_provider`.
    public var provider: Text
    /// A JSON object that every ID token of the session carries.
    public var claims: [UInt8]
    /// The session claims that the tenant's hooks gave; `claims` has them already. The session keeps them apart, for a
    /// later custom token to be merged with.
    var hookClaims: [UInt8] = []
    /// The signer of the custom token; nil without one. A sign-in that waits for a second factor rests on the signer.
    var signer: CustomTokenSigner?

    public init(_ provider: Text, claims: [UInt8] = []) {
        self.provider = provider
        self.claims = claims
    }
}

/// The result of a sign-in: the user, its tokens, and what the method proved.
public struct SignInOutcome<Proof: Sendable>: Sendable {
    public let user: User
    public let tokens: TokenPair
    /// Whether this sign-in created the account.
    public let isNewUser: Bool
    /// The token by which the device is known at its next sign-in.
    public let deviceToken: Text
    /// Nil for a request that was answered before.
    public let proof: Proof?
}
