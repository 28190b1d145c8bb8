import Base
import Transport

/// The checked listening addresses: beyond loopback only if there is TLS or the operator said that clear text is fine.
struct Addresses {
    let rpc: [SocketAddress]
    let http: SocketAddress?

    init(_ configuration: Configuration) throws {
        let texts = configuration.listenAddresses
        guard texts.count <= Limits().listenersMax else {
            throw ConfigurationError(description: "listen_address: at most \(Limits().listenersMax) addresses")
        }
        self.rpc = try texts.map {
            try Self.parse($0, "listen_address", configuration, mayBeRemote: configuration.hasTLS)
        }
        guard configuration.httpAddress != "off" else {
            self.http = nil
            return
        }
        // With TLS off, the operator has said explicitly that this port uses clear text.
        let http = try Self.parse(
            configuration.httpAddress, "http_address", configuration,
            mayBeRemote: configuration.httpTLS == "off" || configuration.hasTLS)
        guard http.path == nil else {
            throw ConfigurationError(description: "http_address: must be address:port")
        }
        self.http = http
    }

    private static func parse(
        _ text: String, _ key: String, _ configuration: Configuration, mayBeRemote: Bool
    ) throws -> SocketAddress {
        guard let address = SocketAddress(text) else {
            throw ConfigurationError(
                description: "\(key): \"\(text)\" is neither address:port, for example 127.0.0.1:7400 or [::1]:7400, "
                    + "nor unix: and an absolute path of \(SocketAddress.pathByteCountMax) bytes at most")
        }
        guard address.isLoopback || configuration.allowPlaintext || mayBeRemote else {
            throw ConfigurationError(
                description: "\(key): \(text) is reachable from other machines and there is no TLS; "
                    + "bind to loopback, or say --allow-plaintext if the network is yours")
        }
        return address
    }
}
