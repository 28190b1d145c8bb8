public import Base
public import Messages

extension ProviderInfo {
    /// "password" and "phone" are found by email and phone number.
    public var isFederated: Bool { providerID != Self.password && providerID != Self.phone }

    /// Made once: a literal would be allocated for every comparison.
    public static let password: Text = "password"
    public static let phone: Text = "phone"
}
