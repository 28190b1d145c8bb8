public import Base
public import Messages

// How requests name a user: by uid, email, phone number or identity.

extension UserName {
    /// INVALID_UID, INVALID_EMAIL, INVALID_PHONE_NUMBER, INVALID_PROVIDER, INVALID_ISSUER.
    public func check(limits: Limits) throws(Failure) {
        switch name {
        case nil: throw .invalid(.invalidUID, field: "name", "is required")
        case .uid(let uid): try Values.checkUID(uid, limits: limits)
        case .email(let email): _ = try Values.email(email, form: .toFind, limits: limits)
        case .phoneNumber(let number):
            guard !number.isEmpty else {
                throw .invalid(.invalidPhoneNumber, field: "phone_number", "is required, in E.164 form")
            }
            try Values.checkPhoneNumber(number)
        case .identity(let identity): try identity.check(limits: limits)
        }
    }
}

extension ProviderIdentity {
    public var entry: ProviderInfo { ProviderInfo(providerID: providerID, rawID: rawID, issuer: issuer) }

    func check(limits: Limits) throws(Failure) {
        switch providerID {
        case "password": _ = try Values.email(rawID, field: "raw_id", form: .toFind, limits: limits)
        case "phone": try UserName(name: .phoneNumber(rawID)).check(limits: limits)
        default: try Values.checkProvider(entry, field: "identity", form: .toFind, limits: limits)
        }
    }
}
