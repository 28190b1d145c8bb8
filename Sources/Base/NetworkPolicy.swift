/// The addresses to which connections are allowed. Public addresses are always allowed; link-local addresses, those of
/// clouds' metadata services, multicast and reserved addresses never.
///
/// The policy judges the address of the socket that is about to be made, not the name. A name that resolves to another
/// address the second time (DNS rebinding) gains nothing. Settings are judged by the same policy when they are set
/// (`mayReach`), as far as their hosts tell an address.
public struct NetworkPolicy: Sendable, Hashable {
    /// Connections without TLS (`http://` instead of `https://`), and only to this machine: for development and tests.
    public var allowsHTTPToLoopback: Bool
    /// RFC 1918, RFC 6598, unique local IPv6 and loopback, without the metadata services of clouds: for a server in the
    /// operator's own network.
    public var allowsPrivateAddresses: Bool

    public init(allowsHTTPToLoopback: Bool = false, allowsPrivateAddresses: Bool = false) {
        self.allowsHTTPToLoopback = allowsHTTPToLoopback
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }

    /// The policy for a tenant's hooks, webhooks and mail server. Their one setting, `allow_private_addresses`, also
    /// allows connections without TLS to this machine.
    public static func ownServers(allowPrivateAddresses: Bool) -> NetworkPolicy {
        NetworkPolicy(allowsHTTPToLoopback: allowPrivateAddresses, allowsPrivateAddresses: allowPrivateAddresses)
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

    /// Whether a connection to `host` may be permitted. False for an address, or a name of this machine, to which every
    /// connection would be refused. True for any other name: only a lookup tells where it leads.
    public func mayReach(_ host: Text, isPlaintext: Bool) -> Bool {
        guard let known = IPAddress.known(host) else { return true }
        return known.contains { permits($0, isPlaintext: isPlaintext) }
    }

    /// The same for the host of a URL.
    public func mayReach(_ url: HTTPURL) -> Bool { mayReach(url.host, isPlaintext: url.isPlaintext) }
}
