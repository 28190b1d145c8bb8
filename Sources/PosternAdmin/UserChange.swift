public import Base
import Messages

/// What `updateUser` changes: nil leaves a property as it is, an empty value removes it.
public struct UserChange: Sendable {
    public var email: Text?
    public var emailVerified: Bool?
    public var password: Secret?
    public var displayName: Text?
    public var photoURL: Text?
    public var phoneNumber: Text?
    public var disabled: Bool?

    public init(
        email: Text? = nil, emailVerified: Bool? = nil, password: Secret? = nil, displayName: Text? = nil,
        photoURL: Text? = nil, phoneNumber: Text? = nil, disabled: Bool? = nil
    ) {
        self.email = email
        self.emailVerified = emailVerified
        self.password = password
        self.displayName = displayName
        self.photoURL = photoURL
        self.phoneNumber = phoneNumber
        self.disabled = disabled
    }

    var fields: MaskedFields<UsersUpdateRequest> {
        var fields = MaskedFields<UsersUpdateRequest>()
        fields.set("email", \.email, email)
        fields.set("email_verified", \.emailVerified, emailVerified)
        fields.set("password", \.password, password)
        fields.set("display_name", \.displayName, displayName)
        fields.set("photo_url", \.photoURL, photoURL)
        fields.set("phone_number", \.phoneNumber, phoneNumber)
        fields.set("disabled", \.disabled, disabled)
        return fields
    }
}
