public import Base
public import Messages

/// A change of a user, for `TenantAdmin.updateUser`. Nil leaves a property as it is; an empty value removes it.
///
/// ```swift
/// try await tenant.updateUser(uid, UserChange(displayName: "", disabled: false))
/// ```
public struct UserChange: Sendable {
    /// The email, at most 254 bytes. Unique in the tenant.
    public var email: Text?
    /// True if the email is known to belong to the user.
    public var emailVerified: Bool?
    /// The password, 6 to 4,096 bytes.
    public var password: Secret?
    /// The display name, at most 256 bytes.
    public var displayName: Text?
    /// The URL of the photo, at most 2,048 bytes.
    public var photoURL: Text?
    /// The phone number in E.164 form. Unique in the tenant.
    public var phoneNumber: Text?
    /// True: the user cannot sign in, refresh or use a token.
    public var disabled: Bool?
    /// The custom claims: a JSON object of at most 1,000 bytes.
    public var customClaimsJSON: Text?
    /// Identities to add.
    public var linkProviders: [ProviderInfo]?
    /// Providers to remove, before the others are added.
    public var unlinkProviderIDs: [Text]?
    /// True: every session ends, and all tokens that were issued until now are refused.
    public var revokeTokens: Bool?

    /// Creates a change of the given properties.
    public init(
        email: Text? = nil, emailVerified: Bool? = nil, password: Secret? = nil, displayName: Text? = nil,
        photoURL: Text? = nil, phoneNumber: Text? = nil, disabled: Bool? = nil,
        customClaimsJSON: Text? = nil, linkProviders: [ProviderInfo]? = nil, unlinkProviderIDs: [Text]? = nil,
        revokeTokens: Bool? = nil
    ) {
        self.email = email
        self.emailVerified = emailVerified
        self.password = password
        self.displayName = displayName
        self.photoURL = photoURL
        self.phoneNumber = phoneNumber
        self.disabled = disabled
        self.customClaimsJSON = customClaimsJSON
        self.linkProviders = linkProviders
        self.unlinkProviderIDs = unlinkProviderIDs
        self.revokeTokens = revokeTokens
    }

    var fields: MaskedFields<UsersUpdateRequest> {
        var fields = MaskedFields<UsersUpdateRequest>()
        fields.set(.email, \.email, email)
        fields.set(.emailVerified, \.emailVerified, emailVerified)
        fields.set(.password, \.password, password)
        fields.set(.displayName, \.displayName, displayName)
        fields.set(.photoURL, \.photoURL, photoURL)
        fields.set(.phoneNumber, \.phoneNumber, phoneNumber)
        fields.set(.disabled, \.disabled, disabled)
        fields.set(.customClaimsJSON, \.customClaimsJSON, customClaimsJSON?.bytes)
        fields.set(.linkProviders, \.linkProviders, linkProviders)
        fields.set(.unlinkProviderIDs, \.unlinkProviderIDs, unlinkProviderIDs)
        fields.set(.revokeTokens, \.revokeTokens, revokeTokens)
        return fields
    }
}
