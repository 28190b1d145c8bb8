public import Base

/// A tenant's switch for a way to sign in. Its raw value is stored with sign-ins that wait for a second factor, so it
/// never changes.
public enum MethodSwitch: String, Sendable {
    /// The tenant has no switch for the method.
    case always = ""
    case password = "password"
    case emailLink = "email_link"
    case phone = "phone"
    case anonymous = "anonymous"
}

extension MethodSwitch {
    /// The setting of `Tenant` that switches the method; empty if there is none.
    public var settingName: String {
        switch self {
        case .always: ""
        case .password: "allow_password_signup"
        case .emailLink: "enable_email_link_signin"
        case .phone: "enable_phone_signin"
        case .anonymous: "enable_anonymous_user"
        }
    }
}

extension TenantSettings {
    public func allows(_ methodSwitch: MethodSwitch) -> Bool {
        switch methodSwitch {
        case .always: true
        case .password: allowsPasswordSignup
        case .emailLink: allowsEmailLinkSignin
        case .phone: allowsPhoneSignin
        case .anonymous: allowsAnonymousUsers
        }
    }

    /// OPERATION_NOT_ALLOWED where the tenant has switched the method off.
    public func requireAllowed(_ methodSwitch: MethodSwitch) throws(Failure) {
        guard allows(methodSwitch) else { throw .switchedOff(methodSwitch) }
    }
}
