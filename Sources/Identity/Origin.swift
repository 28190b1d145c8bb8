public import Base
public import Rules

/// The origin of a change, as the event log and the refusals keep it.
public struct Origin: Sendable {
    /// The API key's id; "" for the server itself.
    public let actor: Text
    public let requestID: Text
    /// The caller's address.
    public let peerAddress: Text
    /// The change's idempotency key, if the caller gave one.
    public private(set) var idempotency: Idempotency?
    /// The device, by which a user can tell a new session from others.
    public var device = Device()

    /// The end user's device, as the caller describes it.
    public struct Device: Sendable {
        public var name = Text.empty
        /// The end user's address, only from callers that are trusted to report it.
        public var address: EndUserAddress?
        /// The hash of the address, as `KnownAddresses` keeps it.
        var addressHash: UInt64?

        public init(name: Text = .empty, address: EndUserAddress? = nil, keys: GuessKeys) {
            self.name = name
            self.address = address
            self.addressHash = address.map { keys.address($0) }
        }

        fileprivate init() {}
    }

    public init(
        actor: Text, requestID: Text, peerAddress: Text, idempotency: Idempotency? = nil
    ) {
        self.idempotency = idempotency
        self.actor = actor
        self.requestID = requestID
        self.peerAddress = peerAddress
    }

    /// Those who share the turns that the tenant has at the workers: the end user's network if its address is known,
    /// otherwise the caller's own.
    func source(_ endUser: EndUserAddress?) -> Text {
        guard let address = endUser ?? EndUserAddress(peerAddress) else { return peerAddress }
        return Hex.encode(address.network)
    }

    /// The origin of the same request, for a session that begins on `device`.
    func on(_ device: Device) -> Origin {
        var origin = self
        origin.device = device
        return origin
    }

    /// The origin of a later step of the same request, which keeps an answer of its own under the request's key.
    func inStep(_ name: String) -> Origin {
        var origin = self
        origin.idempotency = idempotency?.step(name)
        return origin
    }

    /// Changes the server makes by itself: the first key, expiry, recovery.
    public static let server = Origin(actor: .empty, requestID: .empty, peerAddress: .empty)
}
