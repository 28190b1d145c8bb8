public import Base
public import Messages

extension ProviderInfo {
    /// Whether the entry is an identity at a provider; "password" and "phone" are found by email and phone number.
    public var isFederated: Bool { providerID != Self.password && providerID != Self.phone }

    /// Made once: a literal would be allocated for every comparison.
    public static let password: Text = "password"
    public static let phone: Text = "phone"
}
