public import Base
public import Messages

/// The conditions of a query, which finds the users that meet all of them. An empty or nil condition does not count.
///
/// Letters A-Z count as a-z in emails and display names.
///
/// ```swift
/// let newest = tenant.queryUsers(UserConditions(emailPart: "@example.com", order: .created, descending: true))
/// for try await user in newest { print(user.uid) }
/// ```
public struct UserConditions: Sendable, Equatable {
    /// How the email begins.
    public var emailPrefix: Text
    /// Any part of the email.
    public var emailPart: Text
    /// How the display name begins.
    public var displayNamePrefix: Text
    /// How the phone number begins, from its plus sign.
    public var phoneNumberPrefix: Text
    /// The user has an identity of this provider. "password" and "phone" are allowed too.
    public var providerID: Text
    /// With `providerID`: the user's id at the provider.
    public var rawID: Text
    /// Whether the user is disabled.
    public var disabled: Bool?
    /// Whether the email is verified.
    public var emailVerified: Bool?
    /// The user was created at this time or later.
    public var createdFrom: Timestamp?
    /// The user was created before this time.
    public var createdBefore: Timestamp?
    /// The user signed in last at this time or later.
    public var lastSignInFrom: Timestamp?
    /// The user signed in last before this time, or never.
    public var lastSignInBefore: Timestamp?
    /// The user has this custom claim.
    public var claimName: Text
    /// With `claimName`: the claim's value, in JSON. An array has the value if one of its items is the value.
    public var claimValueJSON: Text
    /// The order of the users. `.unspecified` is the order that costs least.
    public var order: UserOrder
    /// The last user first.
    public var descending: Bool

    /// Creates conditions.
    public init(
        emailPrefix: Text = .empty, emailPart: Text = .empty, displayNamePrefix: Text = .empty,
        phoneNumberPrefix: Text = .empty, providerID: Text = .empty, rawID: Text = .empty, disabled: Bool? = nil,
        emailVerified: Bool? = nil, createdFrom: Timestamp? = nil, createdBefore: Timestamp? = nil,
        lastSignInFrom: Timestamp? = nil, lastSignInBefore: Timestamp? = nil, claimName: Text = .empty,
        claimValueJSON: Text = .empty, order: UserOrder = .unspecified, descending: Bool = false
    ) {
        self.emailPrefix = emailPrefix
        self.emailPart = emailPart
        self.displayNamePrefix = displayNamePrefix
        self.phoneNumberPrefix = phoneNumberPrefix
        self.providerID = providerID
        self.rawID = rawID
        self.disabled = disabled
        self.emailVerified = emailVerified
        self.createdFrom = createdFrom
        self.createdBefore = createdBefore
        self.lastSignInFrom = lastSignInFrom
        self.lastSignInBefore = lastSignInBefore
        self.claimName = claimName
        self.claimValueJSON = claimValueJSON
        self.order = order
        self.descending = descending
    }

    var request: UsersQueryRequest {
        UsersQueryRequest(
            order: order, descending: descending, emailPrefix: emailPrefix, emailPart: emailPart,
            displayNamePrefix: displayNamePrefix, phoneNumberPrefix: phoneNumberPrefix, providerID: providerID,
            rawID: rawID, disabledCondition: disabled.map { .disabled($0) },
            emailVerifiedCondition: emailVerified.map { .emailVerified($0) },
            createdFromMicros: createdFrom?.microseconds ?? 0, createdBeforeMicros: createdBefore?.microseconds ?? 0,
            lastSignInFromMicros: lastSignInFrom?.microseconds ?? 0,
            lastSignInBeforeMicros: lastSignInBefore?.microseconds ?? 0, claimName: claimName,
            claimValueJSON: claimValueJSON)
    }
}
