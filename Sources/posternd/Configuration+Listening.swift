import Base
import Glibc

/// The addresses on which the server listens, who may connect, and through which proxies.
extension Configuration {
    /// The addresses of the RPC port, as they are written.
    var listenAddresses: [String] {
        listenAddress.split(separator: ",", omittingEmptySubsequences: false).map { Self.trimmed($0) }
    }

    /// The rules that must hold, and the messages for an operator if they do not.
    var listeningRules: [(isSo: Bool, message: String)] {
        [
            (["on", "off"].contains(httpTLS), "http_tls: must be on or off"),
            (socketMode != nil, "unix_socket_mode: must be the octal digits of a mode, such as 0600 or 0660"),
            (
                proxies != nil,
                "proxy_protocol_from: must be networks such as 10.0.0.0/8 or 2001:db8::/32, with commas between them, "
                    + "\(Limits().proxyNetworksMax) at most"
            ),
        ]
    }

    /// The mode that says who may connect to a Unix domain socket; nil if the setting is no mode.
    var socketMode: mode_t? {
        let digits = unixSocketMode.utf8
        let isOctal = digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }
        guard isOctal, (3...4).contains(digits.count), let mode = mode_t(unixSocketMode, radix: 8) else { return nil }
        return mode <= 0o777 ? mode : nil
    }

    /// The networks of proxies whose connections begin with a header; nil if the setting is not a list of networks.
    var proxies: [IPNetwork]? {
        if proxyProtocolFrom.isEmpty { return [] }
        let texts = proxyProtocolFrom.split(separator: ",", omittingEmptySubsequences: false)
        let networks = texts.compactMap { IPNetwork(Self.trimmed($0)) }
        return networks.count == texts.count && texts.count <= Limits().proxyNetworksMax ? networks : nil
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
