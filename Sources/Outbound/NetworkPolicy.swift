public import Base

/// The addresses to which connections are allowed. Public addresses are always allowed; link-local (a cloud's metadata
/// service), multicast and reserved addresses never.
///
/// The policy judges the address of the socket that is about to be made, not the name. A name that resolves to another
/// address the second time (DNS rebinding) gains nothing.
public struct NetworkPolicy: Sendable, Hashable {
    /// `http://` instead of `https://`, and only to this machine: for development and tests.
    public var allowsHTTPToLoopback: Bool
    /// RFC 1918, RFC 6598, unique local IPv6 and loopback: for a provider in the operator's own network.
    public var allowsPrivateAddresses: Bool

    public init(allowsHTTPToLoopback: Bool = false, allowsPrivateAddresses: Bool = false) {
        self.allowsHTTPToLoopback = allowsHTTPToLoopback
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }

    /// `isPlaintext`: the connection will have no TLS.
    public func permits(_ address: IPAddress, isPlaintext: Bool) -> Bool {
        if isPlaintext { return allowsHTTPToLoopback && address.reach == .loopback }
        switch address.reach {
        case .global: return true
        case .privateNetwork: return allowsPrivateAddresses
        case .loopback: return allowsPrivateAddresses || allowsHTTPToLoopback
        case .special: return false
        }
    }
}
