/// How a call came over the network, for logs.
public struct CallForm: Sendable {
    /// `native` or `grpc`; empty for a call that no network carried.
    private let protocolName: StaticString
    private let isEncrypted: Bool

    /// The protocol, with `+tls` after it if the call was encrypted: `grpc+tls`.
    public var name: String { "\(protocolName)\(isEncrypted ? "+tls" : "")" }

    public init(protocolName: StaticString = "", isEncrypted: Bool = false) {
        self.protocolName = protocolName
        self.isEncrypted = isEncrypted
    }
}
