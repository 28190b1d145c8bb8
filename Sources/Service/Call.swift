import Base
import Identity
import Messages
import Reactor
import Rules
import Store

/// The gate's result for a call: its caller, and its tenant.
struct Admission: Sendable {
    let service: ServiceContext
    let method: MethodDescriptor
    /// Nil only for methods that need no credential.
    let caller: Caller?
    /// The tenant's settings as the call began; the default pool's for methods that are about no tenant.
    let settings: TenantSettings
    /// The tenant that the request names, if the gate did not look for it (`TENANT_RULE_NAMED`).
    let namedTenantID: Text?

    /// The tenant the request means.
    var tenantID: Text { namedTenantID ?? settings.tenantID }
    var project: Project { service.project }
}

/// The data of an admitted call for a handler that waits: a `Call` or a `StreamCall`.
///
/// A class, because a waiting call passes through many functions: each of them would copy a struct.
protocol WaitingCall: AnyObject, Sendable {
    var admission: Admission { get }
    var requestID: Text { get }
    var peerAddress: Text { get }
    var deadline: Instant { get }
    /// Set for mutations whose caller sent an idempotency-key.
    var idempotency: Idempotency? { get }
}

/// A unary call that waits, mostly for a change. A call that only reads is a `ReadCall`.
final class Call: WaitingCall {
    let admission: Admission
    let requestID: Text
    let peerAddress: Text
    let deadline: Instant
    let idempotency: Idempotency?
    /// The decoded request.
    let change: PreparedChange

    init(
        _ change: PreparedChange, _ admission: Admission, requestID: Text, peerAddress: Text, deadline: Instant,
        idempotency: Idempotency?
    ) {
        self.change = change
        self.admission = admission
        self.requestID = requestID
        self.peerAddress = peerAddress
        self.deadline = deadline
        self.idempotency = idempotency
    }
}

/// A decoded request of a slow method.
struct PreparedChange: Sendable {
    let requestedTenantID: Text?
    let endUser: NamedEndUser
    let purpose: WritePurpose
    let isLong: Bool
    /// The memory of the decoded request.
    let memoryByteCount: Int
    /// Runs the handler and returns the encoded response.
    let run: @Sendable (Call) async throws -> [UInt8]
}

/// A stream. It has no deadline here: the carrier ends it when the client wants, or when its credential ends.
final class StreamCall: WaitingCall {
    let admission: Admission
    let requestID: Text
    let peerAddress: Text
    var deadline: Instant { .distantFuture }
    /// Nil: a repeated stream is a new stream.
    var idempotency: Idempotency? { nil }

    init(_ admission: Admission, requestID: Text, peerAddress: Text) {
        self.admission = admission
        self.requestID = requestID
        self.peerAddress = peerAddress
    }
}

extension WaitingCall {
    var service: ServiceContext { admission.service }
    var method: MethodDescriptor { admission.method }
    var caller: Caller? { admission.caller }
    var settings: TenantSettings { admission.settings }
    var tenantID: Text { admission.tenantID }
    var project: Project { admission.project }
    var limits: Limits { admission.project.limits }
    var now: Timestamp { admission.project.clock.now() }

    /// The origin of the call, for the event log.
    var origin: Origin {
        Origin(
            actor: caller?.id ?? .empty, requestID: requestID, peerAddress: peerAddress, idempotency: idempotency)
    }

    /// Proves the end user: a genuine ID token of this tenant that is not revoked.
    func verifiedUser(idToken: Text) throws -> VerifiedUser {
        try project.tokenCheck.verifiedUser(idToken, settings: settings, store: project.store)
    }
}

extension Call {
    /// Proves an end user, who may still have to enroll a second factor before going further.
    func enrollingUser(idToken: Text) throws -> EnrollingUser {
        try project.store.read {
            try project.secondFactorEnrollments.user(idToken, settings: settings, in: $0)
        }
    }
}

extension StreamCall {
    /// The tenant's present settings, read whenever the stream looks again. CALLER_UNAUTHENTICATED, TENANT_NOT_FOUND,
    /// TENANT_SUSPENDED, PROJECT_DISABLED.
    func stillAdmitted() throws -> TenantSettings {
        try project.store.read { transaction in
            try checkCaller(in: transaction)
            let settings = try project.tenants.settings(of: tenantID, in: transaction)
            try settings.checkOpen(to: caller, for: method)
            return settings
        }
    }

    /// The rows of a log that a stream reads when it was woken. For further rows it takes turns of its loop: up to
    /// sixteen streams are woken in one turn (`ChangeHub`), and all of them read in it.
    static let wokenRowsMax = 32

    /// Follows `topics`, and the credential that the stream began with, from now on. Call it on `loop` only, before the
    /// handler reads what it follows, and end the watch there; see `ChangeHub.watch`.
    func watch(_ topics: [ChangeTopic], on loop: EventLoop) -> Watch {
        project.changes.watch(
            topics + project.callers.topics(of: caller), in: caller.line, on: loop)
    }

    /// CALLER_UNAUTHENTICATED if the credential that the stream began with is no longer valid.
    func checkCaller(in transaction: borrowing ReadTransaction) throws {
        if let caller { try project.callers.checkStillValid(caller, from: peerAddress, in: transaction) }
    }
}

extension Call {
    /// The page that the request asks for, in a method that goes through many rows. INVALID_PAGE_SIZE,
    /// INVALID_PAGE_TOKEN.
    func page(_ request: some PagedRequest) throws(Failure) -> Page {
        try Page(
            of: request, method: method.fullName, tenantID: tenantID, key: project.pageTokenKey, limits: limits)
    }

    /// The owner of a user of this call's tenant.
    func userSession(_ uid: Text) -> UserSession { project.users.session(tenantID: settings.tenantID, uid: uid) }

    /// The request's data about the end user it is made for; for methods that have such data.
    func endUserRequest(
        idToken: Text = .empty, endUserIP: Text = .empty, deviceName: Text = .empty, deviceToken: Text = .empty
    ) -> EndUserRequest {
        var request = EndUserRequest(
            caller: caller, settings: settings, origin: origin, operation: method.fullName,
            deadline: deadline)
        request.idToken = idToken
        request.endUserIP = endUserIP
        request.deviceName = deviceName
        request.deviceToken = deviceToken
        return request
    }

    /// The turn of a password that is hashed for this call. `address`: the end user's, if it is known.
    func passwordTurn(address: EndUserAddress? = nil) -> PasswordTurn {
        PasswordTurn(settings: settings, address: address, origin: origin, deadline: deadline)
    }

    /// The answer to an earlier change of the signed-in user with the same idempotency key; nil for the first one.
    /// Called before anything else, because a change may end the token it is made with.
    func repeatedChange(idToken: Text) async throws -> SignedIn? {
        try await project.repeatedChanges.answer(to: endUserRequest(idToken: idToken))
    }

    /// Checks a password that an end user chooses. WEAK_PASSWORD, PASSWORD_TOO_LONG,
    /// PASSWORD_DOES_NOT_MEET_REQUIREMENTS.
    func checkNewPassword(_ password: Secret) throws {
        try settings.checkNewPassword(password, limits: limits)
    }
}
