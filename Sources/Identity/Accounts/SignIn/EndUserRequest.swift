public import Base
public import Messages
public import Rules

/// A request that is made for an end user: the caller, the tenant, and everything in the request except the credential.
public struct EndUserRequest: Sendable {
    public let caller: Caller?
    public let settings: TenantSettings
    public private(set) var origin: Origin
    /// The method's full name, for the record of a refusal.
    public let operation: String
    public let deadline: Instant
    /// The ID token of the user that is signed in already; empty for a sign-in.
    public var idToken = Text.empty
    /// The address, device name and device token as the request states them.
    public var endUserIP = Text.empty
    public var deviceName = Text.empty
    public var deviceToken = Text.empty

    public init(
        caller: Caller?, settings: TenantSettings, origin: Origin, operation: String, deadline: Instant
    ) {
        self.caller = caller
        self.settings = settings
        self.origin = origin
        self.operation = operation
        self.deadline = deadline
    }

    /// Whom the request is for, among those who share the tenant's turns.
    var source: Text { origin.source(origin.device.address) }

    /// The same request, for a session that begins on `device`.
    func on(_ device: Origin.Device) -> EndUserRequest {
        var request = self
        request.origin = origin.on(device)
        return request
    }

    /// The end user's address, believed only from credentials that are marked for it; nil when it is not known.
    ///
    /// Checked before anything else. INVALID_END_USER_IP; from other callers only for a string longer than any address.
    public func address() throws(Failure) -> EndUserAddress? {
        guard endUserIP.byteCount <= EndUserAddress.byteCountMax else { throw .invalidEndUserIP }
        guard caller?.trustsEndUserIP == true, !endUserIP.isEmpty else { return nil }
        guard let address = EndUserAddress(endUserIP) else { throw .invalidEndUserIP }
        return address
    }
}

/// One attempt to sign in, as a method's steps see it.
public struct SignInAttempt: Sendable {
    public enum Purpose: Sendable {
        /// Signs in to an account, or makes one.
        case signIn
        /// Adds the method to the account of a signed-in user.
        case link
        case reauthenticate
    }

    public let request: EndUserRequest
    public let address: EndUserAddress?
    public let purpose: Purpose
    /// The user that is signed in already; nil to sign in.
    public let user: VerifiedUser?
    public let startedAt: Timestamp
    let resources: Resources
    let keys: GuessKeys
    /// How far the check of a password came.
    let passwordCheck = PasswordCheck()

    public var settings: TenantSettings { request.settings }
    public var tenantID: Text { request.settings.tenantID }
    public var limits: Limits { resources.limits }
    public var deadline: Instant { request.deadline }

    /// The end user's device, by which the user tells sessions apart. INVALID_DISPLAY_NAME.
    public func device() throws(Failure) -> Origin.Device {
        try Values.checkDisplayName(request.deviceName, field: "device_name", limits: limits)
        return Origin.Device(name: request.deviceName, address: address, keys: keys)
    }

    /// Whether the same request was done before, and will be answered again. IDEMPOTENCY_KEY_REUSED.
    public func isRepeated() throws -> Bool { try resources.earlier(request.origin) != nil }
}

/// The end user in the record of a refusal, as far as the request names one.
public struct RefusedEndUser: Sendable {
    /// Kept as a hash.
    public var email: Email?
    public var uid: Text
    /// Kept as a hash, where there is no email.
    public var phoneNumber: Text

    public init(email: Email? = nil, uid: Text = .empty, phoneNumber: Text = .empty) {
        self.email = email
        self.uid = uid
        self.phoneNumber = phoneNumber
    }

    /// A user that exists.
    public init(_ user: User) { self.init(email: Email(stored: user.email), uid: user.uid) }
}
