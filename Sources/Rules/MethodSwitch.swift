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
}
